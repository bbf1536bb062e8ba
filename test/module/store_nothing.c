/* A shared object that is no module, for tests. */
extern const int some_symbol;
const int some_symbol = 1;
