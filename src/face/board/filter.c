#include "face/board/board.h"

static const char *add_label(struct str label, struct request *rq, struct arena *a)
{
	if (!label.n)
		return "# needs the name of a label: #bug";
	GIVE(rq, labels, arena_append(a, rq->labels, arena_str(a, label)));
	return NULL;
}

static const char *add_class(struct str name, struct request *rq)
{
	enum class_rank rank = class_parse(name);

	if (!rank)
		return "class: is expedite, fixed-date, standard or intangible";
	GIVE(rq, class_rank, rank);
	return NULL;
}

static const char *add_word(struct str w, struct str agent, struct request *rq, struct arena *a)
{
	if (str_cut_prefix(&w, STR("#")) || str_cut_prefix(&w, STR("label:")))
		return add_label(w, rq, a);
	if (str_cut_prefix(&w, STR("class:")))
		return add_class(w, rq);
	if (str_cut_prefix(&w, STR("@")) || str_cut_prefix(&w, STR("holder:"))) {
		GIVE(rq, holder, arena_str(a, w));
		return w.n ? NULL : "@ needs the name of an agent: @ann";
	}
	if (str_cut_prefix(&w, STR("type:"))) {
		GIVE(rq, type, arena_str(a, w));
		return w.n ? NULL : "type: needs a type: type:bug";
	}
	if (!str_is(w, "mine"))
		return "a filter has the words #LABEL @HOLDER class:CLASS type:TYPE mine";
	GIVE(rq, view, rq->view | VIEW_MINE);
	GIVE(rq, agent, agent);
	return NULL;
}

const char *filter_apply(struct str words, struct str agent, struct request *rq, struct arena *a)
{
	const char *fault = NULL;

	while (words.n && !fault) {
		struct str w = str_cut(&words, ' ');

		if (w.n)
			fault = add_word(w, agent, rq, a);
	}
	return fault;
}
