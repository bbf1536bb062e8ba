#include "http/http_message.h"

struct str http_header(struct http_headers headers, const char *name)
{
	for (size_t i = 0; i < headers.n; i++)
		if (str_eq_nocase(headers.v[i].name, str_c(name)))
			return headers.v[i].value;
	return str_n(NULL, 0);
}

size_t http_header_count(struct http_headers headers, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < headers.n; i++)
		n += str_eq_nocase(headers.v[i].name, str_c(name));
	return n;
}

bool http_has_header(struct http_headers headers, const char *name)
{
	return http_header_count(headers, name);
}

const char *http_status_text(int status)
{
	static const struct {
		int status;
		const char *text;
	} texts[] = {
		{ 200, "OK" },
		{ 201, "Created" },
		{ 202, "Accepted" },
		{ 204, "No Content" },
		{ 304, "Not Modified" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" },
		{ 408, "Request Timeout" },
		{ 409, "Conflict" },
		{ 411, "Length Required" },
		{ 412, "Precondition Failed" },
		{ 413, "Content Too Large" },
		{ 414, "URI Too Long" },
		{ 415, "Unsupported Media Type" },
		{ 417, "Expectation Failed" },
		{ 422, "Unprocessable Content" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].status == status)
			return texts[i].text;
	return "Status";
}
