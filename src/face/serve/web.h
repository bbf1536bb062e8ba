/* web: the files of the board, which are part of the module. tools/embed-web makes the table. */
#ifndef FACE_SERVE_WEB_H
#define FACE_SERVE_WEB_H

struct web_form {
	const char *begin, *end;
	const char *etag; /* the SHA-256 of the bytes, in quotes */
};

struct web_file {
	const char *path, *type;
	struct web_form plain, gzip;
};

extern const struct web_file web_files[]; /* ends with a path of NULL */

#endif
