/* The protocol's lines, and the words of the driver's command. An answer is accepted whole or not at all: a word too many, a
 * byte that is not printable or a number with a sign makes it garbage. */
#include <string.h>

#include "base/text.h"
#include "proof/drive/drive.h"

#define LEASE_MAX INT64_C(31536000000) /* a year, in ms */
#define FENCE_MAX INT64_C(1000000000000000)

static const struct {
	const char *name, *expected;
} verbs[] = {
	[DRIVE_CREATE] = { "create", "`ok ID`, `refused WHY` or `error WHY`" },
	[DRIVE_NEXT] = { "next", "`ok ID FENCE LEASE`, `none`, `refused WHY` or `error WHY`" },
	[DRIVE_HEARTBEAT] = { "heartbeat", "`ok LEASE`, `refused WHY` or `error WHY`" },
	[DRIVE_DONE] = { "done", "`ok`, `repeated`, `refused WHY` or `error WHY`" },
	[DRIVE_SHOW] = { "show",
			 "`ok STATE FENCE`, `gone` or `error WHY`; STATE is open, held or done" },
};

const char *drive_verb_name(enum drive_verb verb)
{
	return verbs[verb].name;
}

const char *drive_expected(enum drive_verb verb)
{
	return verbs[verb].expected;
}

/* --- answers -------------------------------------------------------------------------------------- */

/* Cuts off the next word. Words are separated by exactly one space, so a word is never empty. */
static bool line_word(struct str *rest, struct str *out)
{
	if (!rest->n)
		return false;
	*out = str_cut(rest, ' ');
	return out->n > 0;
}

static bool line_number(struct str word, int64_t most, int64_t *out)
{
	for (size_t i = 0; i < word.n; i++)
		if (word.p[i] < '0' || word.p[i] > '9')
			return false;
	return word.n && word.n <= 18 && str_to_i64(word, out) && *out <= most;
}

/* `-`: there is none */
static bool line_fence(struct str *rest, int64_t *out)
{
	struct str word;

	*out = 0;
	if (!line_word(rest, &word))
		return false;
	return str_is(word, "-") || line_number(word, FENCE_MAX, out);
}

/* Milliseconds; `-`: no limit; a `+` at the end: the driver renews it. */
static bool line_lease(struct str *rest, struct drive_answer *out)
{
	struct str word;

	if (!line_word(rest, &word))
		return false;
	if (str_is(word, "-"))
		return true;
	out->renews = word.p[word.n - 1] == '+';
	word.n -= out->renews;
	return line_number(word, LEASE_MAX, &out->lease) && out->lease > 0;
}

static bool line_id(struct str *rest, struct str *out)
{
	return line_word(rest, out) && out->n <= DRIVE_ID_MAX;
}

static bool line_state(struct str *rest, enum drive_state *out)
{
	static const char *const states[] = { "open", "held", "done" };
	struct str word;

	if (!line_word(rest, &word))
		return false;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (str_is(word, states[i])) {
			*out = (enum drive_state)i;
			return true;
		}
	return false;
}

static bool line_ok(enum drive_verb verb, struct str *rest, struct drive_answer *out)
{
	switch (verb) {
	case DRIVE_CREATE:
		return line_id(rest, &out->id);
	case DRIVE_NEXT:
		return line_id(rest, &out->id) && line_fence(rest, &out->fence) &&
		       line_lease(rest, out);
	case DRIVE_HEARTBEAT:
		return line_lease(rest, out);
	case DRIVE_SHOW:
		return line_state(rest, &out->state) && line_fence(rest, &out->fence);
	default:
		return true;
	}
}

/* Printable ASCII, or UTF-8 beyond it: an id goes into a history and onto a terminal. */
static bool line_clean(struct str line)
{
	for (size_t i = 0; i < line.n; i++)
		if ((unsigned char)line.p[i] < ' ' || line.p[i] == 0x7f)
			return false;
	return text_valid(line);
}

bool drive_parse(enum drive_verb verb, struct str line, struct drive_answer *out)
{
	static const struct {
		const char *word;
		unsigned verbs;
		bool why;
	} words[] = {
		[DRIVE_OK] = { "ok", ~0u, false },
		[DRIVE_NONE] = { "none", 1u << DRIVE_NEXT, false },
		[DRIVE_REPEATED] = { "repeated", 1u << DRIVE_DONE, false },
		[DRIVE_REFUSED] = { "refused", ~(1u << DRIVE_SHOW), true },
		[DRIVE_GONE] = { "gone", 1u << DRIVE_SHOW, false },
		[DRIVE_ERROR] = { "error", ~0u, true },
	};
	struct str rest = line, word;

	*out = (struct drive_answer){ 0 };
	if (line.n >= DRIVE_LINE_MAX || !line_clean(line) || !line_word(&rest, &word))
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!str_is(word, words[i].word) || !(words[i].verbs >> verb & 1))
			continue;
		out->word = (enum drive_word)i;
		out->why = words[i].why ? rest : STR("");
		if (words[i].why)
			return true;
		return line.p[line.n - 1] != ' ' && (i != DRIVE_OK || line_ok(verb, &rest, out)) &&
		       !rest.n;
	}
	return false;
}

/* --- the command ---------------------------------------------------------------------------------- */

struct splitter {
	struct str in;
	size_t at;
	char *word;
	size_t n;
	bool any;   /* a word has begun; it may be empty: '' */
	char quote; /* 0: outside */
};

/* One byte of the command; false: a backslash ends it. */
static bool split_byte(struct splitter *s)
{
	char c = s->in.p[s->at++];
	bool escapes = c == '\\' && s->quote != '\'';

	s->any = true;
	if (c == s->quote || (!s->quote && (c == '"' || c == '\''))) {
		s->quote = s->quote ? 0 : c;
		return true;
	}
	if (!escapes) {
		s->word[s->n++] = c;
		return true;
	}
	if (s->at == s->in.n)
		return false;
	c = s->in.p[s->at++];
	if (s->quote && c != '"' && c != '\\')
		s->word[s->n++] = '\\';
	s->word[s->n++] = c;
	return true;
}

char *const *drive_split(struct str command, struct arena *a, const char **why)
{
	struct splitter s = { .in = command, .word = arena_array(a, char, command.n + 1) };
	char **words = arena_array(a, char *, command.n / 2 + 2);
	size_t n = 0;

	*why = memchr(str_p(command), 0, command.n) ? "it has a NUL byte" : NULL;
	while (!*why && s.at <= command.n) {
		bool space = s.at == command.n || strchr(" \t\n", command.p[s.at]);

		if (space && s.quote && s.at == command.n)
			*why = "a quotation mark is not closed";
		else if (!space || s.quote)
			*why = split_byte(&s) ? NULL : "it ends with a backslash";
		else {
			if (s.any)
				words[n++] = arena_cstr(a, str_n(s.word, s.n));
			s.any = false;
			s.n = 0;
			s.at++;
		}
	}
	if (!*why && (!n || !words[0][0]))
		*why = "it has no word";
	return *why ? NULL : words;
}
