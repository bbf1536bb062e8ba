/* A shared object that is not a module, for tests. */
extern const int some_symbol;
const int some_symbol = 1;
