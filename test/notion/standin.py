#!/usr/bin/env python3
"""standin [--until-exit-of PID] [FILE [DATABASE]]: a stand-in for the part of Notion's API that `pawl sync` uses, for tests.

As a program it listens on a free port of this machine and writes its address to FILE (default: standard output). DATABASE
is the id of its database. With --until-exit-of it goes to the background once it listens, and ends with that process. A
test imports it, and then edits pages as a person does, and breaks requests.

It keeps the rules of API version 2026-03-11 that a client meets: the bearer and version headers, the types of
properties, unknown options, at most 2,000 characters in a text and 100 items in an array, filters two deep, sorts,
cursors, at most 100 results in an answer and 10,000 in a query, times that are rounded down to the minute, an index that
lags behind, and rate limits. `clients.mjs` checks it with Notion's own client.
"""

import copy
import datetime
import json
import os
import re
import signal
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "ntn_stand_in_secret"
VERSIONS = {"2025-09-03", "2026-03-11"}
TEXT_MAX, ARRAY_MAX, BODY_MAX, DESCRIPTION_MAX = 2000, 100, 500_000, 280

STATUSES = ["Backlog", "Ready", "In Progress", "Blocked", "Needs Help", "Review", "Done", "Failed", "Canceled"]
CLASSES = ["Expedite", "Fixed Date", "Standard", "Intangible"]
SCHEMA = {
    "Task name": "title",
    "ID": "unique_id",
    "Pawl ID": "rich_text",
    "Status": "status",
    "Priority": "number",
    "Class": "select",
    "Due": "date",
    "Agent Run": "rich_text",
    "Lock Token": "rich_text",
    "Lock Expires": "date",
    "Assignee": "people",
    "Blocker Reason": "rich_text",
    "Unblock Action": "rich_text",
    "Summary": "rich_text",
    "Started At": "date",
    "Done At": "date",
    "Parent-task": "relation",
    "Sub-tasks": "relation",
}
OPTIONS = {"Status": STATUSES, "Class": CLASSES}
WORDS = {"users", "me", "databases", "data_sources", "query", "pages", "markdown", "comments"}
DUAL = {"Parent-task": "Sub-tasks", "Sub-tasks": "Parent-task"}


class Refusal(Exception):
    def __init__(self, status, code, message, headers=()):
        super().__init__(message)
        self.status, self.code, self.headers = status, code, dict(headers)


def invalid(message):
    return Refusal(400, "validation_error", message)


def plain_id(text):
    """Ids come with or without dashes."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise invalid(f"path failed validation: path.id should be a valid uuid, instead was `{json.dumps(text)}`.")


def iso(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def minute(seconds):
    return iso(seconds - seconds % 60)


def units(text):
    """Notion counts UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def rich(text):
    return {
        "type": "text",
        "text": {"content": text, "link": None},
        "annotations": {
            "bold": False,
            "italic": False,
            "strikethrough": False,
            "underline": False,
            "code": False,
            "color": "default",
        },
        "plain_text": text,
        "href": None,
    }


def plain(value):
    return "".join(item["plain_text"] for item in value)


class Notion:
    """One workspace with one database."""

    def __init__(self, schema=None, options=None):
        self.lock = threading.RLock()
        self.skew = 0.0  # seconds that the clock of this server is ahead
        self.bot, self.person = str(uuid.uuid4()), str(uuid.uuid4())
        self.database, self.source = str(uuid.uuid4()), str(uuid.uuid4())
        self.schema = {}
        for name, kind in (schema or SCHEMA).items():
            self.add_property(name, kind, (options or OPTIONS).get(name, ()))
        self.pages = {}  # id -> page; a property is its value alone
        self.past = {}  # id -> [(time, page)], while reads are stale
        self.comments = {}  # page -> [comment]
        self.number = 0
        self.lag = 0.0  # seconds that reads are behind
        self.rows_max = 10_000
        self.rate = 0  # requests per second; 0: no limit
        self.room = self.filled = 0.0
        self.faults = []  # of break_it()
        self.seen = []  # (time, method, path) of every request
        self.limited = 0  # how many were refused because there were too many
        self.victim = None  # the process that break_it(..., "kill…") kills

    def now(self):
        return time.time() + self.skew

    def add_property(self, name, kind, options=()):
        self.schema[name] = {
            "id": re.sub(r"\W", "", name)[:4],
            "name": name,
            "type": kind,
            "description": None,
            "options": [{"id": str(uuid.uuid4())[:8], "name": o, "color": "default"} for o in options],
        }

    # ---- what a person does

    def page_of(self, page_id):
        return self.pages[plain_id(page_id)]

    def edit(self, page_id, **changes):
        """A person edits properties: edit(page, Status="Done", Due="2026-12-01", Title="x")."""
        with self.lock:
            page = self.page_of(page_id)
            self.keep(page)
            for name, value in changes.items():
                name = {"Title": "Task name"}.get(name, name.replace("_", " "))
                self.put(page, name, self.from_person(name, value))
            self.touch(page, self.person)

    def from_person(self, name, value):
        kind = self.schema[name]["type"]
        if kind in {"title", "rich_text"}:
            return [rich(value[i : i + TEXT_MAX]) for i in range(0, len(value), TEXT_MAX)]
        if kind == "date":
            return {"start": value, "end": None, "time_zone": None} if value else None
        if kind in {"status", "select"}:
            return self.option(name, value) if value else None
        if kind == "relation":
            return [{"id": plain_id(v)} for v in value]
        if kind == "people":
            return [{"object": "user", "id": v} for v in value]
        return value

    def write(self, page_id, markdown):
        with self.lock:
            page = self.page_of(page_id)
            self.keep(page)
            page["markdown"] = normal(markdown)
            self.touch(page, self.person)

    def new(self, markdown="", **changes):
        with self.lock:
            page = self.make_page(self.person)
            page["markdown"] = normal(markdown)
        self.edit(page["id"], **changes)
        return page["id"]

    def say(self, page_id, text, by=None):
        with self.lock:
            return self.make_comment(plain_id(page_id), [rich(text)], by or self.person)

    def value(self, page_id, name):
        """What a person reads."""
        page = self.page_of(page_id)
        value, kind = page["values"].get(name), self.schema[name]["type"]
        if kind in {"title", "rich_text"}:
            return plain(value or [])
        if kind in {"status", "select"}:
            return value and value["name"]
        if kind == "date":
            return value and value["start"]
        if kind == "relation":
            return [v["id"] for v in value or []]
        return value

    def said(self, page_id, by=None):
        """The comments of one user; of the integration if none is named."""
        return [plain(c["rich_text"]) for c in self.comments.get(plain_id(page_id), ()) if c["by"] == (by or self.bot)]

    def alive(self):
        return [p for p in self.pages.values() if not p["in_trash"]]

    # ---- pages

    def make_page(self, by):
        self.number += 1
        now = self.now()
        page = {
            "id": str(uuid.uuid4()),
            "created": now - now % 60,
            "edited": now - now % 60,
            "by": by,
            "edited_by": by,
            "in_trash": False,
            "values": {},
            "markdown": "",
            "number": self.number,
        }
        self.pages[page["id"]] = page
        self.past[page["id"]] = [(0, None)]
        return page

    def keep(self, page):
        """Remembers the page as it is, for stale reads."""
        if self.lag:
            self.past[page["id"]].append((page.get("at", 0), copy.deepcopy(page)))

    def touch(self, page, by):
        page["at"] = self.now()
        page["edited"] = page["at"] - page["at"] % 60
        page["edited_by"] = by

    def as_read(self, page):
        """The page as a read sees it; None: it does not see it yet."""
        when = self.now() - self.lag
        if not self.lag or page.get("at", 0) <= when:
            return page
        for at, old in reversed(self.past[page["id"]]):
            if at <= when:
                return old
        return None

    def put(self, page, name, value):
        page["values"][name] = value
        other = DUAL.get(name)
        if other not in self.schema or name not in self.schema:
            return
        linked = {v["id"] for v in value}
        for p in self.pages.values():
            links = [v for v in p["values"].get(other) or [] if v["id"] != page["id"]]
            if p["id"] in linked:
                links.append({"id": page["id"]})
            if links or p["values"].get(other):
                p["values"][other] = links

    def option(self, name, wanted):
        for o in self.schema[name]["options"]:
            if o["name"] == wanted:
                return dict(o)
        raise invalid(f'{name} is expected to be one of its options; "{wanted}" does not exist.')

    def shown(self, page):
        props = {}
        for name, p in self.schema.items():
            kind, value = p["type"], page["values"].get(name)
            if kind == "unique_id":
                value = {"prefix": "TASK", "number": page["number"]}
            elif value is None and kind in {"title", "rich_text", "relation", "people"}:
                value = []
            elif value is None and kind == "status" and p["options"]:
                value = dict(p["options"][0])
            props[name] = {"id": p["id"], "type": kind, kind: copy.deepcopy(value)}
            if kind == "relation":
                props[name]["has_more"] = False
        return {
            "object": "page",
            "id": page["id"],
            "created_time": iso(page["created"]),
            "last_edited_time": iso(page["edited"]),
            "created_by": {"object": "user", "id": page["by"]},
            "last_edited_by": {"object": "user", "id": page["edited_by"]},
            "cover": None,
            "icon": None,
            "parent": {"type": "data_source_id", "data_source_id": self.source, "database_id": self.database},
            "in_trash": page["in_trash"],
            "is_locked": False,
            "properties": props,
            "url": "https://www.notion.so/" + page["id"].replace("-", ""),
            "public_url": None,
        }

    # ---- checks of what a client sends

    def texts(self, name, items):
        if not isinstance(items, list):
            raise invalid(f"body failed validation: {name} should be an array.")
        if len(items) > ARRAY_MAX:
            raise invalid(f"body failed validation: {name}.length should be ≤ `100`, instead was `{len(items)}`.")
        out = []
        for item in items:
            content = item.get("text", {}).get("content") if isinstance(item, dict) else None
            if not isinstance(content, str):
                raise invalid(f"body failed validation: {name}[0].text.content should be a string.")
            if units(content) > TEXT_MAX:
                raise invalid(
                    f"body failed validation: {name}[0].text.content.length should be ≤ `2000`, instead was `{units(content)}`."
                )
            if content:
                out.append(rich(content))
        return out

    def checked(self, name, sent):
        """The value of a property as a client sent it."""
        if name not in self.schema:
            raise invalid(f"{name} is not a property that exists.")
        kind = self.schema[name]["type"]
        if not isinstance(sent, dict) or kind not in sent:
            raise invalid(f"{name} is expected to be {kind}.")
        value = sent[kind]
        if kind in {"title", "rich_text"}:
            return self.texts(name, value)
        if kind in {"status", "select"}:
            return self.option(name, value.get("name")) if value else None
        if kind == "number":
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
                raise invalid(f"{name} is expected to be number.")
            return value
        if kind == "date":
            return self.date(name, value)
        if kind in {"relation", "people"}:
            if len(value) > ARRAY_MAX:
                raise invalid(f"body failed validation: {name}.length should be ≤ `100`.")
            ids = [plain_id(v["id"]) for v in value]
            if kind == "people":
                return [{"object": "user", "id": i} for i in ids]
            for i in ids:
                if i not in self.pages:
                    raise Refusal(404, "object_not_found", f"Could not find page with ID: {i}.")
            return [{"id": i} for i in ids]
        raise invalid(f"{name}: {kind} cannot be written.")

    def date(self, name, value):
        if value is None:
            return None
        start = value.get("start")
        try:
            when = datetime.datetime.fromisoformat(start.replace("Z", "+00:00"))
        except (AttributeError, ValueError):
            raise invalid(f"{name}: {start} is not a valid ISO 8601 date string.")
        if len(start) > 10:
            start = when.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + "000+00:00"
        return {"start": start, "end": None, "time_zone": None}

    # ---- filters and sorts

    def field(self, page, f):
        if "timestamp" in f:
            return f["timestamp"], page["created" if f["timestamp"] == "created_time" else "edited"]
        name = f.get("property")
        if name not in self.schema:
            raise invalid(f"Could not find property with name or id: {name}")
        kind, value = self.schema[name]["type"], page["values"].get(name)
        if kind in {"title", "rich_text"}:
            value = plain(value or [])
        elif kind in {"status", "select"}:
            value = value and value["name"]
        return kind, value

    def matches(self, page, f, depth=0):
        for word, test in (("and", all), ("or", any)):
            if word in f:
                if depth == 2:
                    raise invalid("body failed validation: filters can be nested up to two levels deep.")
                return test(self.matches(page, g, depth + 1) for g in f[word])
        kind, value = self.field(page, f)
        if kind not in f:
            raise invalid(f"body failed validation: body.filter.{kind} should be defined.")
        (how, wanted), *more = f[kind].items()
        if more:
            raise invalid("body failed validation: a filter has one condition.")
        if kind in {"created_time", "last_edited_time"}:
            wanted = datetime.datetime.fromisoformat(wanted.replace("Z", "+00:00")).timestamp()
        tests = {
            "equals": lambda: value == wanted,
            "does_not_equal": lambda: value != wanted,
            "is_empty": lambda: not value,
            "is_not_empty": lambda: bool(value),
            "contains": lambda: wanted in value,
            "on_or_after": lambda: value >= wanted,
            "on_or_before": lambda: value <= wanted,
            "after": lambda: value > wanted,
            "before": lambda: value < wanted,
        }
        if how not in tests:
            raise invalid(f"body failed validation: body.filter.{kind}.{how} is not a condition.")
        return tests[how]()

    def query(self, body):
        size, cursor = body.get("page_size", 100), body.get("start_cursor")
        if not isinstance(size, int) or not 1 <= size <= 100:
            raise invalid("body failed validation: body.page_size should be ≤ `100`.")
        found = [self.as_read(p) for p in self.pages.values()]
        found = [p for p in found if p and not p["in_trash"]]
        if body.get("filter"):
            found = [p for p in found if self.matches(p, body["filter"])]
        for sort in reversed(body.get("sorts", [])):
            key = {"created_time": "created", "last_edited_time": "edited"}.get(sort.get("timestamp"))
            if not key:
                raise invalid("body failed validation: body.sorts[0].timestamp should be defined.")
            found.sort(key=lambda p: p[key], reverse=sort.get("direction") == "descending")
        cut = len(found) > self.rows_max
        found = found[: self.rows_max]
        at = 0
        if cursor is not None:
            at = next((i for i, p in enumerate(found) if p["id"] == cursor), -1)
            if at < 0:
                raise invalid(f"The start_cursor provided is invalid: {cursor}")
        rest = found[at + size :]
        out = {
            "object": "list",
            "results": [self.shown(p) for p in found[at : at + size]],
            "next_cursor": rest[0]["id"] if rest else None,
            "has_more": bool(rest),
            "type": "page_or_data_source",
            "page_or_data_source": {},
        }
        if cut and not rest:
            out["request_status"] = {"type": "incomplete", "incomplete_reason": "query_result_limit_reached"}
        return out

    # ---- comments

    def make_comment(self, page_id, items, by):
        now = self.now()
        comment = {"id": str(uuid.uuid4()), "rich_text": items, "by": by, "time": now - now % 60, "at": now}
        self.comments.setdefault(page_id, []).append(comment)
        return comment

    def shown_comment(self, page_id, c):
        return {
            "object": "comment",
            "id": c["id"],
            "parent": {"type": "page_id", "page_id": page_id},
            "discussion_id": c["id"],
            "created_time": iso(c["time"]),
            "last_edited_time": iso(c["time"]),
            "created_by": {"object": "user", "id": c["by"]},
            "rich_text": c["rich_text"],
            "display_name": {"type": "integration", "resolved_name": "pawl"},
        }

    # ---- calls

    def live_page(self, page_id, reading=True):
        page = self.pages.get(plain_id(page_id))
        if page and reading:
            page = self.as_read(page)
        if not page:
            raise Refusal(
                404,
                "object_not_found",
                f"Could not find page with ID: {page_id}. Make sure the relevant pages and databases are shared with your integration.",
            )
        return page

    def call(self, method, path, query, body):
        parts = path.strip("/").split("/")
        if parts[:1] != ["v1"]:
            raise Refusal(400, "invalid_request_url", "Invalid request URL.")
        name = " ".join([method, *(p if p in WORDS else "*" for p in parts[1:])])
        handler = {
            "GET users me": self.get_me,
            "GET databases *": self.get_database,
            "GET data_sources *": self.get_source,
            "PATCH data_sources *": self.patch_source,
            "POST data_sources * query": self.post_query,
            "POST pages": self.post_page,
            "GET pages *": self.get_page,
            "PATCH pages *": self.patch_page,
            "GET pages * markdown": self.get_markdown,
            "PATCH pages * markdown": self.patch_markdown,
            "GET comments": self.get_comments,
            "POST comments": self.post_comment,
        }.get(name)
        if not handler:
            raise Refusal(400, "invalid_request_url", "Invalid request URL.")
        return handler(parts[2] if len(parts) > 2 else "", query, body)

    def get_me(self, _id, _query, _body):
        return {"object": "user", "id": self.bot, "type": "bot", "name": "pawl", "avatar_url": None, "bot": {}}

    def get_database(self, id, _query, _body):
        if plain_id(id) != self.database:
            raise Refusal(
                404,
                "object_not_found",
                f"Could not find database with ID: {id}. Make sure the relevant pages and databases are shared with your integration.",
            )
        return {
            "object": "database",
            "id": self.database,
            "title": [rich("Tasks")],
            "in_trash": False,
            "data_sources": [{"id": self.source, "name": "Tasks"}],
        }

    def source_only(self, id):
        if plain_id(id) != self.source:
            raise Refusal(404, "object_not_found", f"Could not find data_source with ID: {id}.")

    def get_source(self, id, _query, _body):
        self.source_only(id)
        props = {}
        for name, p in self.schema.items():
            kind = p["type"]
            props[name] = {"id": p["id"], "name": name, "description": p["description"], "type": kind, kind: {}}
            if kind in {"status", "select"}:
                props[name][kind] = {"options": copy.deepcopy(p["options"])}
        return {"object": "data_source", "id": self.source, "properties": props, "title": [rich("Tasks")], "in_trash": False}

    def patch_source(self, id, query, body):
        self.source_only(id)
        for name, sent in body.get("properties", {}).items():
            kind = sent.get("type") or next((k for k in sent if k not in {"name", "description"}), None)
            if name not in self.schema:
                if not kind:
                    raise invalid(f"{name}: a new property needs a type.")
                self.add_property(name, kind, [o["name"] for o in (sent[kind] or {}).get("options", [])])
                continue
            p = self.schema[name]
            if kind != p["type"]:
                raise invalid(f"{name} is {p['type']}.")
            if "description" in sent:
                if sent["description"] and units(sent["description"]) > DESCRIPTION_MAX:
                    raise invalid(f"{name}: description.length should be ≤ `{DESCRIPTION_MAX}`.")
                p["description"] = sent["description"]
            if "options" in (sent[kind] or {}):
                if len(sent[kind]["options"]) > ARRAY_MAX:
                    raise invalid(f"{name}: options.length should be ≤ `100`.")
                old = {o["name"]: o for o in p["options"]}
                wanted = [o["name"] for o in sent[kind]["options"]]
                # an option that is not named again goes away
                p["options"] = [
                    old.get(o) or {"id": str(uuid.uuid4())[:8], "name": o, "color": "default"} for o in wanted
                ]
        return self.get_source(id, query, None)

    def post_query(self, id, _query, body):
        self.source_only(id)
        return self.query(body)

    def post_page(self, _id, _query, body):
        parent = body.get("parent", {})
        if parent.get("data_source_id"):
            self.source_only(parent["data_source_id"])
        elif plain_id(parent.get("database_id") or "") != self.database:
            raise invalid("body failed validation: body.parent should be defined.")
        if "markdown" in body and "children" in body:
            raise invalid("body failed validation: markdown and children are mutually exclusive.")
        values = {n: self.checked(n, v) for n, v in body.get("properties", {}).items()}
        page = self.make_page(self.bot)
        for name, value in values.items():
            self.put(page, name, value)
        page["markdown"] = normal(body.get("markdown", ""))
        self.touch(page, self.bot)
        return self.shown(page)

    def get_page(self, id, _query, _body):
        return self.shown(self.live_page(id))

    def patch_page(self, id, _query, body):
        page = self.live_page(id, reading=False)
        if page["in_trash"] and body.get("in_trash") is not False:
            raise invalid("Can't edit page on block with an archived ancestor.")
        values = {n: self.checked(n, v) for n, v in body.get("properties", {}).items()}
        self.keep(page)
        for name, value in values.items():
            self.put(page, name, value)
        if "in_trash" in body:
            page["in_trash"] = bool(body["in_trash"])
        self.touch(page, self.bot)
        return self.shown(page)

    def shown_markdown(self, page):
        return {
            "object": "page_markdown",
            "id": page["id"],
            "markdown": page["markdown"],
            "truncated": False,
            "unknown_block_ids": [],
        }

    def get_markdown(self, id, _query, _body):
        return self.shown_markdown(self.live_page(id))

    def patch_markdown(self, id, _query, body):
        page = self.live_page(id, reading=False)
        if body.get("type") != "replace_content" or not isinstance(body["replace_content"].get("new_str"), str):
            raise invalid("body failed validation: body.type should be `replace_content`.")
        self.keep(page)
        page["markdown"] = normal(body["replace_content"]["new_str"])
        self.touch(page, self.bot)
        return self.shown_markdown(page)

    def get_comments(self, _id, query, _body):
        page = self.live_page(query.get("block_id", ""))
        all_of = [c for c in self.comments.get(page["id"], []) if c["at"] <= self.now() - self.lag]
        at = int(query.get("start_cursor", 0))
        size = int(query.get("page_size", 100))
        rest = all_of[at + size :]
        return {
            "object": "list",
            "results": [self.shown_comment(page["id"], c) for c in all_of[at : at + size]],
            "next_cursor": str(at + size) if rest else None,
            "has_more": bool(rest),
            "type": "comment",
            "comment": {},
        }

    def post_comment(self, _id, _query, body):
        page = self.live_page(body.get("parent", {}).get("page_id", ""), reading=False)
        items = self.texts("rich_text", body.get("rich_text"))
        if not items:
            raise invalid("body failed validation: body.rich_text.length should be ≥ `1`.")
        return self.shown_comment(page["id"], self.make_comment(page["id"], items, self.bot))

    # ---- faults

    def break_it(self, kind, nth=1, path="", method="", times=1):
        """The nth request that matches meets a fault: 400, 409, 429, 500, 502, 503, 529 (before it acts), "502 after", "503
        after", "garbage after", "close" (without an answer, after it acted), "redirect", "garbage", "kill before", "kill after" (no answer is sent),
        "kill answered MS", that many milliseconds after the answer, or a function that is called before the request acts."""
        self.faults.append({"kind": kind, "left": nth, "path": path, "method": method, "times": times})

    def fault(self, method, path):
        for f in self.faults:
            if f["times"] and f["method"] in method and re.search(f["path"], path):
                f["left"] -= 1
                if f["left"] <= 0:
                    f["times"] -= 1
                    return f["kind"]
        return None

    def kill(self):
        if self.victim:
            os.kill(self.victim, signal.SIGKILL)

    def limit(self):
        if not self.rate:
            return
        now = time.monotonic()
        self.room = min(self.rate, self.room + (now - self.filled) * self.rate) if self.filled else self.rate
        self.filled = now
        if self.room < 1:
            self.limited += 1
            raise Refusal(429, "rate_limited", "You have been rate limited.", {"Retry-After": "1"})
        self.room -= 1


def normal(markdown):
    """Notion gives back its own form of a text."""
    return "\n".join(line.rstrip() for line in markdown.replace("\r\n", "\n").strip("\n").split("\n"))


BROKEN = {
    400: ("validation_error", "Title is not valid."),
    401: ("unauthorized", "API token is invalid."),
    403: ("restricted_resource", "Insufficient permissions for this endpoint."),
    409: ("conflict_error", "Conflict occurred while saving. Please try again."),
    429: ("rate_limited", "You have been rate limited."),
    500: ("internal_server_error", "Unexpected error occurred."),
    502: ("bad_gateway", "Bad gateway."),
    503: ("service_unavailable", "Notion is unavailable. Please try again later."),
    529: ("service_overload", "Notion is overloaded."),
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_args):
        pass

    def send(self, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response_only(status)
        self.send_header("Date", self.date_time_string(self.server.notion.now()))
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, status, code, message, headers=()):
        error = {"object": "error", "status": status, "code": code, "message": message, "request_id": str(uuid.uuid4())}
        self.send(status, error, headers)

    def read_body(self):
        size = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(size)
        if size > BODY_MAX:
            raise invalid(f"body failed validation: body is too large ({size} bytes).")
        if not data:
            return {}
        try:
            return json.loads(data)
        except ValueError:
            raise Refusal(400, "invalid_json", "Error parsing JSON body.")

    def check_headers(self, notion):
        if self.headers.get("Authorization") != "Bearer " + notion.token:
            raise Refusal(401, "unauthorized", "API token is invalid.")
        version = self.headers.get("Notion-Version")
        if not version:
            raise Refusal(400, "missing_version", "Notion-Version header should be defined.")
        if version not in VERSIONS:
            raise invalid(f"Notion-Version header failed validation: {version} is not a version.")

    def answer(self):
        notion = self.server.notion
        path, _, text = self.path.partition("?")
        query = dict(p.partition("=")[::2] for p in text.split("&") if p)
        body = None
        try:
            body = self.read_body()
            with notion.lock:
                notion.seen.append((time.monotonic(), self.command, path))
                self.check_headers(notion)
                notion.limit()
                fault = notion.fault(self.command, path)
                if callable(fault):
                    fault()
                if fault == "kill before":
                    notion.kill()
                    self.close_connection = True
                    return
                if fault == "redirect":
                    self.send(307, b"", {"Location": self.path})
                    return
                if fault == "garbage":
                    self.send(200, b'{"object": "list", "results": [')
                    return
                if fault in BROKEN:
                    headers = {"Retry-After": "0"} if fault in {429, 529} else {}
                    self.refuse(fault, *BROKEN[fault], headers)
                    return
                out = notion.call(self.command, path, query, body)
                data = json.dumps(out).encode()
        except Refusal as e:
            self.refuse(e.status, e.code, str(e), e.headers)
            return
        if fault == "kill after":
            notion.kill()
        if fault in {"kill after", "close"}:
            self.close_connection = True
            return
        if fault in {"502 after", "503 after"}:
            status = int(fault.split()[0])
            self.refuse(status, *BROKEN[status])
            return
        if fault == "garbage after":
            data = data[:-1]
        self.send(200, data)
        if str(fault).startswith("kill answered"):
            self.wfile.flush()
            time.sleep(float(fault.split()[2]) / 1000)
            notion.kill()

    do_GET = do_POST = do_PATCH = do_DELETE = answer


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 50

    def handle_error(self, request, client_address):
        """A client that was killed leaves its connection open."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def bind(notion, token=TOKEN):
    """A server that listens already; its address is notion.url."""
    notion.token = token
    server = Server(("127.0.0.1", 0), Handler)
    server.notion = notion
    notion.url = f"http://127.0.0.1:{server.server_address[1]}"
    notion.server = server
    return server


def serve(notion):
    """Starts a server in a thread."""
    threading.Thread(target=bind(notion).serve_forever, daemon=True).start()
    return notion


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def main():
    words, pid = sys.argv[1:], None
    if words[:1] == ["--until-exit-of"]:
        pid, words = int(words[1]), words[2:]
    notion = Notion()
    if len(words) > 1:
        notion.database = plain_id(words[1])
    server = bind(notion)
    said = json.dumps({"url": notion.url, "token": TOKEN, "database": notion.database, "person": notion.person})
    if words:
        with open(words[0] + ".new", "w") as f:
            f.write(said)
        os.rename(words[0] + ".new", words[0])
    else:
        print(said, flush=True)
    if pid:
        if os.fork():
            os._exit(0)
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    while not pid or alive(pid):
        time.sleep(0.2)


if __name__ == "__main__":
    main()
