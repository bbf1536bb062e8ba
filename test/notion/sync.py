#!/usr/bin/env python3
"""sync [--kills N|all] [--pages N] [--jobs N] [--times] [NAME...]: `pawl sync` against the stand-in for Notion. Prints TAP.

NAME: only the tests whose names contain it. --kills: at how many points a sync is killed (default: 8). --pages: the size
of the large database (default: 301, with Notion's limit of a query set to 100).
"""

import argparse
import concurrent.futures
import copy
import datetime
import fcntl
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import standin  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAWL = os.environ.get("PAWL") or os.path.join(ROOT, "build/pawl")
SECRET = standin.TOKEN


def soon(seconds):
    return datetime.datetime.fromtimestamp(time.time() + seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")


class Scene:
    """A fresh queue, and a database in Notion."""

    def __init__(self, schema=None, options=None, notion=None, settle="0"):
        self.dir = tempfile.mkdtemp(prefix="pawl-notion-")
        self.notion = standin.serve(notion or standin.Notion(schema, options))
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("PAWL_", "NOTION_", "XDG_"))}
        self.env = {
            **keep,
            "HOME": self.dir,
            "XDG_STATE_HOME": self.dir + "/state",
            "XDG_CONFIG_HOME": self.dir + "/config",
            "PAWL_STORE": f"sqlite:{self.dir}/queue.db",
            "PAWL_TIMEOUT": "5s",
            "PAWL_AGENT": "al",
            "PAWL_MODULE_DIR": os.environ.get("PAWL_MODULE_DIR") or os.path.dirname(os.path.abspath(PAWL)),
            "NOTION_TOKEN": SECRET,
            "NOTION_API_BASE": self.notion.url,
            "NOTION_RATE": "0",
            "NOTION_SETTLE_MS": settle,
        }

    def close(self):
        self.notion.server.shutdown()
        self.notion.server.server_close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def run(self, *words, **env):
        p = subprocess.run(
            [PAWL, *words], env={**self.env, **env}, cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert SECRET not in p.stdout + p.stderr, "the token was printed"
        return p

    def pawl(self, *words, code=0, **env):
        p = self.run(*words, "--json", **env)
        assert p.returncode == code, f"{words}: {p.returncode}\n{p.stdout}{p.stderr}"
        return json.loads(p.stdout)

    def sync(self, *words, code=0, **env):
        env.setdefault("PAWL_AGENT", "")
        return self.pawl("sync", "notion:" + self.notion.database, *words, code=code, **env)

    def create(self, title, *words):
        return self.pawl("create", title, *words)["task"]["id"]

    def task(self, id):
        return self.pawl("show", id)["task"]

    def comments(self, id):
        return [c["text"] for c in self.pawl("show", id)["comments"]]

    def tasks(self):
        return self.pawl("list", "--all", "--sort", "id", "--limit", "0")["tasks"]

    def page(self, id):
        found = [p["id"] for p in self.notion.alive() if self.notion.value(p["id"], "Pawl ID") == id]
        assert len(found) == 1, f"{id} has {len(found)} pages"
        return found[0]

    def value(self, id, name):
        return self.notion.value(self.page(id), name)

    def events(self):
        return self.pawl("log", "--limit", "0")["events"]

    def quiet(self):
        """Nothing is left to do."""
        done = self.sync("--check")["sync"]
        assert not done["changes"], done["changes"]


def eq(a, b):
    assert a == b, f"{a!r} is not {b!r}"


# ---- both ways


def test_tasks_get_pages_and_pages_become_tasks(s):
    s.create("Fix the parser", "--description", "# Why\n\nIt *fails*.  \n", "--priority", "7", "--class", "expedite", "--due", "2026-12-01")
    s.create("Part", "--parent", "t1", "--status", "backlog")
    s.notion.new("the text", Title="From a person", Status="Ready", Priority=9, Class="Intangible", Due="2026-12-24")
    check = s.sync("--check")["sync"]
    eq((check["tasks_created"], check["pages_created"]), (1, 2))
    eq((len(s.tasks()), len(s.notion.alive())), (2, 1))
    s.sync()
    t = s.task("t3")
    eq((t["title"], t["status"], t["priority"], t["class"], t["due"]), ("From a person", "Ready", 9, "Intangible", "2026-12-24"))
    eq(t["description"], "the text")
    eq(s.value("t3", "Task name"), "From a person")
    n = s.notion
    page = s.page("t1")
    eq([n.value(page, f) for f in ("Task name", "Status", "Priority", "Class", "Due")],
       ["Fix the parser", "Ready", 7, "Expedite", "2026-12-01"])
    eq(n.page_of(page)["markdown"], "# Why\n\nIt *fails*.")
    eq(s.value("t2", "Parent-task"), [page])
    eq(s.value("t2", "Status"), "Backlog")
    s.quiet()


def test_edits_go_both_ways(s):
    for i in range(3):
        s.create(f"task {i}")
    s.sync()
    n, page = s.notion, s.page("t1")
    n.edit(page, Title="by a person", Priority=50, Class="Fixed Date", Due="2027-01-01T10:00:00.000Z")
    n.edit(page, **{"Parent-task": [s.page("t3")]})
    n.write(page, "new text")
    s.pawl("update", "t2", "--title", "by pawl", "--priority", "3", "--class", "intangible", "--due", "2027-02-02",
           "--description", "pawl's text", "--parent", "t3")
    s.sync()
    t = s.task("t1")
    eq((t["title"], t["priority"], t["class"], t["due"], t["description"], t["parent"]),
       ("by a person", 50, "Fixed Date", "2027-01-01T10:00:00.000Z", "new text", "t3"))
    eq([s.value("t2", f) for f in ("Task name", "Priority", "Class", "Due", "Parent-task")],
       ["by pawl", 3, "Intangible", "2027-02-02", [s.page("t3")]])
    eq(n.page_of(s.page("t2"))["markdown"], "pawl's text")
    s.quiet()
    # and empty again
    n.edit(page, Due=None, **{"Parent-task": []})
    n.write(page, "")
    s.pawl("update", "t2", "--due", "", "--description", "", "--parent", "")
    s.sync()
    t = s.task("t1")
    eq((t.get("due"), t.get("description"), t.get("parent")), (None, None, None))
    eq((s.value("t2", "Due"), s.value("t2", "Parent-task"), n.page_of(s.page("t2"))["markdown"]), (None, [], ""))
    s.quiet()


FIELDS = {  # field: (the person's value, what pawl gets, the other value of pawl as words, as the page shows it)
    "title": ("Title", "people", "people", ["--title", "agents"]),
    "priority": ("Priority", 11, 11, ["--priority", "12"]),
    "class": ("Class", "Expedite", "Expedite", ["--class", "intangible"]),
    "due": ("Due", "2027-03-03", "2027-03-03", ["--due", "2027-04-04"]),
    "parent": ("Parent-task", "t2", "t2", ["--parent", "t3"]),
    "description": ("text", "people's text", "people's text", ["--description", "agents' text"]),
}


def test_people_win_a_conflict_on_each_field(s):
    for title in ("one", "two", "three"):
        s.create(title)
    s.sync()
    for field, (name, said, got, words) in FIELDS.items():
        page = s.page("t1")
        if field == "description":
            s.notion.write(page, said)
        elif field == "parent":
            s.notion.edit(page, **{name: [s.page(said)]})
        else:
            s.notion.edit(page, **{name: said})
        s.pawl("update", "t1", *words)
        s.sync()
        eq((field, s.task("t1")[field]), (field, got))
        s.quiet()
    texts = " ".join(e.get("text", "") for e in s.events())
    for lost in ("agents", "12", "Intangible", "2027-04-04", "agents' text"):
        assert lost in texts, f"the log does not say what was lost: {lost}"


def test_the_lock_of_an_agent_shows_on_the_page(s):
    s.create("work")
    s.sync()
    user = s.notion.person
    s.pawl("claim", "t1", "--run", "run-7")
    s.sync(NOTION_AGENT_USER_ID=user)
    eq([s.value("t1", f) for f in ("Status", "Agent Run", "Lock Token")], ["In Progress", "run-7", "pawl:1"])
    assert s.value("t1", "Lock Expires") > soon(600)
    eq([p["id"] for p in s.value("t1", "Assignee")], [user])
    s.pawl("block", "t1", "--reason", "no key", "--unblock-action", "send it", "--run", "run-7")
    s.sync()
    eq([s.value("t1", f) for f in ("Status", "Blocker Reason", "Unblock Action")], ["Blocked", "no key", "send it"])
    s.pawl("unblock", "t1")
    s.pawl("claim", "t1", "--run", "run-7")
    s.pawl("review", "t1", "--summary", "all done", "--run", "run-7")
    s.sync()
    eq([s.value("t1", f) for f in ("Status", "Summary", "Agent Run", "Lock Token", "Lock Expires")],
       ["Review", "all done", "", "", None])
    s.quiet()


def test_an_expired_lease_leaves_the_page(s):
    s.create("work")
    s.pawl("claim", "t1", "--ttl", "1s")
    s.sync()
    eq(s.value("t1", "Lock Token"), "pawl:1")
    while s.task("t1")["lock"]["live"]:
        time.sleep(0.05)
    s.sync()
    eq((s.value("t1", "Lock Token"), s.value("t1", "Lock Expires")), ("", None))


def bring(s, id, status):
    """Leads a task to a status, by operations of the queue."""
    if status in {"Backlog"}:
        s.pawl("update", id, "--status", "backlog")
    elif status == "Canceled":
        s.pawl("cancel", id, "--reason", "x")
    elif status != "Ready":
        s.pawl("claim", id)
        end = {
            "In Progress": ["lock", "break", id, "--reason", "x"],
            "Blocked": ["block", id, "--reason", "x", "--unblock-action", "y"],
            "Needs Help": ["escalate", id, "--reason", "x"],
            "Review": ["review", id, "--summary", "x"],
            "Done": ["done", id],
            "Failed": ["fail", id, "--reason", "x"],
        }[status]
        s.pawl(*end)


MOVES = {
    ("Backlog", "Ready"), ("Ready", "Backlog"), ("Review", "Done"), ("Review", "In Progress"), ("Blocked", "In Progress"),
    ("Blocked", "Ready"), ("Needs Help", "In Progress"), ("Needs Help", "Ready"), ("In Progress", "Ready"),
    ("Failed", "Ready"), ("Done", "Ready"), ("Canceled", "Ready"),
    *((s, "Canceled") for s in standin.STATUSES if s not in {"Done", "Canceled"}),
}


def test_each_move_on_the_board(s):
    """Every status to every other one: an operation, or taken back with a comment."""
    wanted = {}
    pairs = list(itertools.permutations(standin.STATUSES, 2))
    for a, b in pairs if KILLS == "all" else pairs[::4] + [("Review", "Done"), ("Review", "In Progress")]:
        id = s.create(f"{a} to {b}")
        wanted[id] = (a, b)
    s.sync()
    for id, (a, _) in wanted.items():
        bring(s, id, a)
    s.sync()
    s.quiet()
    pages = {s.notion.value(p["id"], "Pawl ID"): p["id"] for p in s.notion.alive()}
    for id, (_, b) in wanted.items():
        s.notion.edit(pages[id], Status=b)
    done = s.sync()["sync"]
    statuses = {t["id"]: t["status"] for t in s.tasks()}
    for id, (a, b) in wanted.items():
        end = b if (a, b) in MOVES else a
        eq((a, b, statuses[id], s.notion.value(pages[id], "Status")), (a, b, end, end))
        said = s.notion.said(pages[id])
        eq((a, b, len(said)), (a, b, 0 if (a, b) in MOVES else 1))
        assert all("Status" in text for text in said)
    eq(done["refused"], sum(pair not in MOVES for pair in wanted.values()))
    s.quiet()


# ---- refusals


def test_pawl_wins_the_status_and_the_lock_of_a_held_task(s):
    s.create("work")
    s.sync()
    s.pawl("claim", "t1")
    s.sync()
    page = s.page("t1")
    for status in ("Ready", "Done", "Canceled", "Backlog"):
        s.notion.edit(page, Status=status, Lock_Token="", Agent_Run="mine", Lock_Expires=None)
        s.sync()
        t = s.task("t1")
        eq((t["status"], t["lock"]["holder"], t["fence"]), ("In Progress", "al", 1))
        eq([s.value("t1", f) for f in ("Status", "Lock Token", "Agent Run")], ["In Progress", "pawl:1", ""])
    eq(len(s.notion.said(page)), 4)
    assert "al holds t1" in s.notion.said(page)[0]
    # fields are people's, also now; the holder is told
    s.notion.edit(page, Title="clearer")
    s.sync()
    eq(s.task("t1")["title"], "clearer")
    eq(s.pawl("heartbeat", "t1")["changed"]["fields"], ["title"])
    s.pawl("done", "t1")


def test_another_program_cannot_lock_a_held_task(s):
    s.create("work")
    s.pawl("claim", "t1")
    s.sync()
    page = s.page("t1")
    s.notion.edit(page, Lock_Token="6f1c3ad2-0000-4000-8000-000000000000", Lock_Expires=soon(600), Agent_Run="other")
    s.sync()
    eq((s.task("t1")["lock"]["holder"], s.value("t1", "Lock Token")), ("al", "pawl:1"))
    assert "Lock Token" in s.notion.said(page)[0]
    s.pawl("done", "t1")


def test_refused_edits_become_comments(s):
    for title in ("one", "two"):
        s.create(title)
    s.pawl("update", "t2", "--parent", "t1")
    s.sync()
    page = s.page("t1")
    bad = {
        "Title": ["", "x" * 501, "nul \0"],
        "Priority": [-1, 1001, 2.5],
        "Due": ["9999999-01-01"],
        "Parent-task": [[s.page("t2")]],
        "Summary": ["mine"], "Blocker Reason": ["mine"], "Started At": ["2020-01-01"], "Done At": ["2020-01-01"], "Pawl ID": ["t9"],
    }
    before = s.task("t1")
    said = 0
    for name, values in bad.items():
        for value in values:
            s.notion.edit(page, **{name: value})
            s.sync()
            said += 1
            comments = s.notion.said(page)
            eq((name, value, len(comments)), (name, value, said))
            assert (name if name != "Title" else "Task name") in comments[-1], comments[-1]
            s.quiet()
    s.notion.write(page, "x" * (256 * 1024 + 1))
    s.sync()
    assert "Text" in s.notion.said(page)[-1]
    after = s.task("t1")
    eq({k: v for k, v in after.items() if k != "version"}, {k: v for k, v in before.items() if k != "version"})
    eq(after["version"], before["version"])
    eq(s.notion.value(page, "Task name"), "one")


def test_a_page_that_cannot_be_a_task_is_told_once(s):
    page = s.notion.new("", Title="x" * 501, Status="Ready")
    s.sync()
    s.sync()
    eq((len(s.tasks()), len(s.notion.said(page))), (0, 1))
    s.notion.skew = 120
    s.notion.edit(page, Title="short")
    s.sync()
    eq(s.task("t1")["title"], "short")


def test_a_refused_page_is_told_without_a_search(s):
    """Only a sync that was killed can have told it, so only the next one looks for the comment first."""
    s.env["NOTION_SETTLE_MS"] = "60000"
    page = s.notion.new("", Title="x" * 501, Status="Ready")
    killed(s, "kill after", "comments", "POST")
    eq([method for _, method, path in s.notion.seen if path == "/v1/comments"], ["POST"])
    s.sync()
    eq([method for _, method, path in s.notion.seen if path == "/v1/comments"], ["POST", "GET"])
    eq(len(s.notion.said(page)), 1)


def test_a_heartbeat_does_not_repeat_a_comment(s):
    s.create("work")
    s.pawl("claim", "t1")
    s.sync()
    s.notion.edit(s.page("t1"), Status="Done")
    killed(s, "kill after", "comments", "POST")
    s.pawl("heartbeat", "t1", "--ttl", "2h")
    s.sync()
    eq((len(s.notion.said(s.page("t1"))), s.value("t1", "Status")), (1, "In Progress"))
    s.quiet()


def test_an_empty_page_waits_for_its_title(s):
    page = s.notion.new("", Status="Ready")
    s.sync()
    eq(len(s.tasks()), 0)
    s.notion.edit(page, Title="now")
    s.sync()
    eq([t["title"] for t in s.tasks()], ["now"])


# ---- foreign locks


def test_a_foreign_lock_is_respected(s):
    s.create("work")
    s.sync()
    page, token = s.page("t1"), "6f1c3ad2-0000-4000-8000-000000000000"
    s.notion.edit(page, Status="In Progress", Lock_Token=token, Lock_Expires=soon(600), Agent_Run="ntask-1")
    s.sync()
    s.pawl("next", code=10)
    s.pawl("claim", "t1", code=20)
    eq([s.value("t1", f) for f in ("Status", "Lock Token", "Agent Run")], ["In Progress", token, "ntask-1"])
    s.notion.edit(page, Lock_Expires=soon(1200), Title="still people's")
    s.sync()
    eq(s.task("t1")["title"], "still people's")
    s.pawl("claim", "t1", code=20)
    # given back
    s.notion.edit(page, Status="Ready", Lock_Token="", Lock_Expires=None, Agent_Run="")
    s.sync()
    s.pawl("claim", "t1")
    eq(s.notion.said(page), [])


def test_what_a_foreign_agent_did_counts(s):
    s.create("work")
    s.sync()
    page = s.page("t1")
    s.notion.edit(page, Status="In Progress", Lock_Token="x-1", Lock_Expires=soon(600), Agent_Run="ntask-1")
    s.sync()
    s.notion.edit(page, Status="Review", Lock_Token="", Lock_Expires=None, Agent_Run="", Summary="they did it")
    s.sync()
    t = s.task("t1")
    eq((t["status"], t["summary"], t["lock"]), ("Review", "they did it", None))
    s.quiet()
    # the second time, after rework
    s.notion.edit(page, Status="In Progress")
    s.sync()
    s.notion.edit(page, Lock_Token="x-2", Lock_Expires=soon(600), Agent_Run="ntask-1")
    s.sync()
    s.notion.edit(page, Status="Done", Lock_Token="", Lock_Expires=None, Agent_Run="")
    s.sync()
    eq(s.task("t1")["status"], "Done")
    eq(s.notion.said(page), [])


def test_an_expired_foreign_lock_counts_for_nothing(s):
    s.create("work")
    s.sync()
    page = s.page("t1")
    s.notion.edit(page, Lock_Token="x-1", Lock_Expires=soon(2))
    s.sync()
    s.pawl("claim", "t1", code=20)
    time.sleep(2.1)
    s.sync()
    s.pawl("claim", "t1")
    s.notion.edit(page, Lock_Token="x-2", Lock_Expires=None)
    s.sync()
    eq(s.task("t1")["lock"]["holder"], "al")


def test_a_new_page_that_is_locked_elsewhere(s):
    s.notion.new("", Title="theirs", Status="In Progress", Lock_Token="x-1", Lock_Expires=soon(600))
    s.sync()
    s.pawl("claim", "t1", code=20)
    s.pawl("next", code=10)


# ---- comments, copies, deletions


def test_comments_of_people_come_once(s):
    s.create("work")
    s.sync()
    page = s.page("t1")
    s.notion.say(page, "first")
    s.sync()
    s.sync()
    s.notion.say(page, "second")
    s.notion.say(page, "of the integration", by=s.notion.bot)
    s.sync()
    s.sync()
    eq(s.comments("t1"), ["from Notion: first", "from Notion: second"])


def test_comments_on_all_open_pages_come_in_turn(s):
    for i in range(25):
        s.create(f"task {i}")
    s.sync()
    for p in s.notion.alive():
        s.notion.say(p["id"], "a remark")
    eq([s.sync()["sync"]["comments"] for _ in range(4)], [10, 10, 5, 0])


def test_comments_after_a_lost_state_come_once(s):
    s.create("one")
    s.sync()
    page = s.page("t1")
    for text in ("first", "again", "again"):
        s.notion.say(page, text)
    s.sync()
    shutil.rmtree(s.dir + "/state/pawl/sync")
    s.notion.say(page, "again")
    # the queue itself recognises a repeated comment, but for a day only
    eq([s.sync()["sync"]["comments"] for _ in range(2)], [1, 0])
    eq(s.comments("t1"), [f"from Notion: {text}" for text in ("first", "again", "again", "again")])


def test_a_deleted_comment_brings_no_older_one_back(s):
    s.create("work")
    s.sync()
    page = s.page("t1")
    s.notion.say(page, "first")
    s.notion.skew = 600
    s.notion.say(page, "second")
    s.notion.skew = 1200
    for text in ("third", "fourth"):
        s.notion.say(page, text)
    s.sync()
    said = [f"from Notion: {text}" for text in ("first", "second", "third", "fourth")]
    eq(s.comments("t1"), said)
    # the queue recognises a repeated comment for a day only, so the sync itself must not bring it again
    del s.notion.comments[page][3]
    eq(s.sync()["sync"]["comments"], 0)
    s.notion.say(page, "fifth")
    eq(s.sync()["sync"]["comments"], 1)
    del s.notion.comments[page][3]
    eq(s.sync()["sync"]["comments"], 0)
    eq(s.comments("t1"), said + ["from Notion: fifth"])


def test_a_copied_page_is_a_new_task(s):
    s.create("work")
    s.sync()
    copied = s.notion.new("", Title="work (1)", Status="Ready", **{"Pawl ID": "t1"})
    s.sync()
    eq([t["title"] for t in s.tasks()], ["work", "work (1)"])
    eq(s.notion.value(copied, "Pawl ID"), "t2")
    s.quiet()


def test_a_removed_task_and_a_deleted_page(s):
    s.create("one")
    s.create("two")
    s.sync()
    first, second = s.page("t1"), s.page("t2")
    s.pawl("remove", "t1")
    s.notion.page_of(second)["in_trash"] = True
    s.pawl("update", "t2", "--priority", "9")
    s.sync()
    eq(s.notion.value(first, "Status"), "Canceled")
    eq([t["id"] for t in s.tasks()], ["t2"])
    s.sync()
    eq(len(s.notion.alive()), 1)


def test_an_archived_task_is_not_removed(s):
    s.create("one")
    s.create("two")
    s.sync()
    s.pawl("cancel", "t1", "--reason", "x")
    s.sync()
    s.pawl("archive", "t1")
    s.sync()
    at = len(s.notion.seen)
    s.sync()
    eq([path for _, _, path in s.notion.seen[at:] if "/pages/" in path], [])
    s.notion.edit(s.page("t1"), Title="edited", Status="Ready")
    s.sync()
    eq((s.task("t1")["title"], s.task("t1")["status"], s.value("t1", "Status")), ("edited", "Ready", "Ready"))
    s.quiet()


def test_a_page_that_was_replaced_comes_back(s):
    """A task has one page: the old one does not speak for it."""
    s.create("one")
    s.sync()
    old = s.page("t1")
    s.notion.page_of(old)["in_trash"] = True
    s.pawl("update", "t1", "--priority", "5")
    s.sync()
    new = s.notion.new("", Title="one", Status="Ready", Priority=5, **{"Pawl ID": "t1"})
    s.sync()
    eq((s.page("t1"), len(s.tasks())), (new, 1))
    s.notion.page_of(old)["in_trash"] = False
    s.notion.edit(old, Title="of the old page")
    s.notion.edit(new, Priority=6)
    s.sync()
    s.sync()
    eq((s.page("t1"), s.task("t1")["title"], s.task("t1")["priority"]), (new, "one", 6))
    eq((len(s.tasks()), s.notion.page_of(old)["in_trash"]), (1, True))
    s.quiet()


def test_a_removed_task_without_a_page(s):
    """The page of a removed task is in the trash, or is permanently gone, so no later sync asks for it."""
    for title in ("one", "two", "three"):
        s.create(title)
    s.sync()
    pages = {id: s.page(id) for id in ("t1", "t2", "t3")}
    for id in pages:
        s.pawl("remove", id)
    s.notion.page_of(pages["t1"])["in_trash"] = True
    del s.notion.pages[pages["t2"]]
    s.notion.break_it(400, path="pages/", method="PATCH", times=2)
    s.sync()
    eq(s.notion.value(pages["t3"], "Status"), "Ready")  # its PATCH failed
    s.sync()
    eq(s.notion.value(pages["t3"], "Status"), "Canceled")
    at = len(s.notion.seen)
    s.sync()
    eq([path for _, _, path in s.notion.seen[at:] if "/pages/" in path], [])


def test_a_restored_page_is_synced_again(s):
    for id in ("one", "two"):
        s.create(id)
    s.sync()
    first, second = s.page("t1"), s.page("t2")
    for page in (first, second):
        s.notion.page_of(page)["in_trash"] = True
    s.pawl("update", "t1", "--priority", "9")
    s.pawl("update", "t2", "--priority", "8")
    s.sync()
    s.sync()
    eq(s.notion.value(first, "Priority"), 2)
    # one of them comes back with a new time of editing, the other without
    s.notion.page_of(first)["in_trash"] = s.notion.page_of(second)["in_trash"] = False
    s.notion.skew = 3600
    s.notion.edit(first, Title="one again")
    s.sync()
    eq((s.task("t1")["title"], s.value("t1", "Priority"), s.value("t2", "Priority")), ("one again", 9, 8))
    s.pawl("update", "t2", "--priority", "7")
    s.sync()
    eq((s.value("t2", "Priority"), len(s.notion.alive())), (7, 2))
    s.quiet()
    # the page of a removed task stays as it is
    s.pawl("remove", "t1")
    s.sync()
    s.notion.edit(first, Title="one more time")
    s.sync()
    eq(([t["id"] for t in s.tasks()], s.notion.value(first, "Status")), (["t2"], "Canceled"))


def test_two_machines_that_take_turns(s):
    """Each has a state of its own. A status that the other one wrote is not a move of a person."""
    here, there = {"XDG_STATE_HOME": s.dir + "/here"}, {"XDG_STATE_HOME": s.dir + "/there"}
    for title in ("one", "two", "three"):
        s.create(title)
    s.sync(**here)
    s.sync(**there)
    s.pawl("claim", "t1")
    s.pawl("claim", "t2")
    s.sync(**here)
    s.pawl("review", "t1", "--summary", "x")
    s.pawl("done", "t2")
    s.pawl("update", "t3", "--title", "by an agent")
    s.notion.edit(s.page("t1"), Title="by a person")
    # a sync that fails before its first round uses the state as well
    s.notion.break_it(403, path="/query$", method="POST")
    s.sync(code=40, **there)
    s.sync(**there)
    for id, title, status in (("t1", "by a person", "Review"), ("t2", "two", "Done"), ("t3", "by an agent", "Ready")):
        t = s.task(id)
        eq((t["title"], t["status"]), (title, status))
        eq((s.value(id, "Task name"), s.value(id, "Status"), s.notion.said(s.page(id))), (title, status, []))
    # the same state twice: moves of people count
    s.notion.edit(s.page("t1"), Status="Done")
    s.sync(**there)
    eq(s.task("t1")["status"], "Done")


def test_a_lost_state_file_does_no_harm(s):
    s.create("one", "--description", "text")
    s.notion.new("body", Title="two", Status="Ready")
    s.sync()
    shutil.rmtree(s.dir + "/state/pawl/sync")
    s.notion.edit(s.page("t1"), Title="newer")
    s.sync()
    eq((len(s.tasks()), len(s.notion.alive()), s.task("t1")["title"]), (2, 2, "newer"))
    s.quiet()


# ---- a second queue


def second_queue(s):
    """Another queue, and the same database."""
    other = Scene(notion=s.notion)
    other.pawl("init")
    return other


def test_a_second_queue_is_refused(s):
    s.create("ours", "--description", "our text")
    s.sync()
    other = second_queue(s)
    try:
        other.create("theirs", "--description", "their text")
        for words in ((), ("--check",), ("--add-options",)):
            refused(other, 40, "belongs to another queue", *words)
        del s.notion.schema["Summary"]  # an optional property
        s.notion.schema["Class"]["options"].pop()
        refused(other, 40, "belongs to another queue", "--add-options")
        eq(len(s.notion.schema["Class"]["options"]), 3)
        s.sync("--add-options")
        eq(s.value("t1", "Task name"), "ours")
        # people keep what they wrote beside the mark
        owner = s.notion.schema["Pawl ID"]["description"]
        s.notion.schema["Pawl ID"]["description"] = "Do not edit. " + owner
        s.sync()
        refused(other, 40, "belongs to another queue")
        # a take-over
        s.notion.page_of(s.page("t1"))["in_trash"] = True
        s.notion.schema["Pawl ID"]["description"] = "Do not edit."
        other.sync()
        assert s.notion.schema["Pawl ID"]["description"].startswith("Do not edit. pawl queue ")
        eq(other.value("t1", "Task name"), "theirs")
        refused(s, 40, "belongs to another queue")
        other.quiet()
    finally:
        other.close()


def test_two_queues_that_begin_at_the_same_time(s):
    """The mark of the second one comes right before or after that of the first."""
    s.create("ours")
    other = second_queue(s)
    try:
        other.sync()
        theirs = s.notion.schema["Pawl ID"]["description"]

        def overtake():
            s.notion.schema["Pawl ID"]["description"] = theirs

        for nth, pages in ((2, 0), (3, 0), (4, 1)):
            s.notion.schema["Pawl ID"]["description"] = None
            s.notion.break_it(overtake, path="data_sources/[^/]*$", method="GET", nth=nth)
            got = s.sync(code=40)
            assert "another queue" in got["error"]["message"], got
            eq((nth, len(s.notion.alive()), s.notion.schema["Pawl ID"]["description"]), (nth, pages, theirs))
    finally:
        other.close()


# ---- edits at a bad moment


def test_an_edit_between_our_read_and_our_write(s):
    """A person edits the page after pawl has read it, and before pawl writes to it."""
    n = s.notion
    s.create("one", "--description", "text")
    s.sync()
    s.sync()
    page = s.page("t1")

    def during(fn, path="pages/[^/]*$"):
        n.break_it(fn, path=path, method="PATCH")
        s.sync()
        s.sync()
        eq(n.faults[-1]["times"], 0)
        s.quiet()

    # a field that pawl takes from the page in the same round
    n.edit(page, Title="first")
    s.pawl("update", "t1", "--priority", "5")
    during(lambda: n.edit(page, Title="second"))
    eq((s.task("t1")["title"], s.value("t1", "Task name"), s.value("t1", "Priority")), ("second", "second", 5))
    # a field that nobody else touches
    s.pawl("update", "t1", "--priority", "6")
    during(lambda: n.edit(page, Due="2027-05-05"))
    eq((s.task("t1")["due"], s.value("t1", "Due")), ("2027-05-05", "2027-05-05"))
    # the text, of which a PATCH of properties shows nothing
    s.pawl("update", "t1", "--priority", "7")
    during(lambda: n.write(page, "a person's text"))
    eq((s.task("t1")["description"], n.page_of(page)["markdown"]), ("a person's text",) * 2)
    # the text of a page that has just become a task
    fresh = n.new("before", Title="fresh", Status="Ready")
    during(lambda: n.write(fresh, "after"))
    eq(s.task("t2")["description"], "after")


def test_an_edit_in_the_minute_of_a_refusal(s):
    """Notion's times of editing are whole minutes."""
    page = s.notion.new("", Title="x" * 501, Status="Ready")
    s.sync()
    s.notion.edit(page, Title="short")
    s.notion.page_of(page)["edited"] = s.notion.page_of(page)["created"]
    s.sync()
    eq([t["title"] for t in s.tasks()], ["short"])


def killed(s, kind, path, method):
    """A sync that is killed at the first request of this kind."""
    s.notion.break_it(kind, path=path, method=method)
    with s.notion.lock:
        p = subprocess.Popen([PAWL, "sync", "notion:" + s.notion.database], env={**s.env, "PAWL_AGENT": ""},
                             cwd=s.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        s.notion.victim = p.pid
    p.wait()
    s.notion.victim = None
    eq(s.notion.faults[-1]["times"], 0)


def test_an_edit_here_after_a_kill_stays(s):
    s.create("one", "--priority", "3")
    killed(s, "kill after", "pages$", "POST")
    eq(len(s.notion.alive()), 1)
    s.pawl("update", "t1", "--title", "one, clearer", "--priority", "4")
    s.notion.edit(s.page("t1"), Class="Expedite")
    s.sync()
    t = s.task("t1")
    eq((t["title"], t["priority"], t["class"]), ("one, clearer", 4, "Expedite"))
    eq([s.value("t1", f) for f in ("Task name", "Priority", "Class")], ["one, clearer", 4, "Expedite"])
    s.quiet()
    # a person moves a page while pawl makes a task of it
    for was, moved, end in (("Ready", "Backlog", "Backlog"), ("In Progress", "Backlog", "Backlog"), ("Blocked", "Ready", "Ready")):
        page = s.notion.new("", Title=f"{was} to {moved}", Status=was)
        killed(s, "kill before", "pages/[^/]*$", "PATCH")
        s.notion.edit(page, Status=moved)
        s.sync()
        id = s.notion.value(page, "Pawl ID")
        eq((was, s.task(id)["status"], s.notion.value(page, "Status"), s.notion.said(page)), (was, end, end, []))
        s.quiet()
    # a task that was made of a page
    s.notion.new("their text", Title="two", Status="Ready", Priority=5)
    killed(s, "kill before", "pages/[^/]*$", "PATCH")
    id = s.tasks()[-1]["id"]
    s.pawl("update", id, "--title", "two, clearer", "--description", "our text")
    s.sync()
    t = s.task(id)
    eq((t["title"], t["description"], t["priority"]), ("two, clearer", "our text", 5))
    eq((s.value(id, "Task name"), s.notion.page_of(s.page(id))["markdown"]), ("two, clearer", "our text"))
    s.quiet()


def finished(s, id, title, status):
    """The second sync finds nothing more to do, and the page says what the task says."""
    s.sync()
    s.quiet()
    t = s.task(id)
    eq((t["title"], t["status"]), (title, status))
    eq((s.value(id, "Task name"), s.value(id, "Status")), (title, status))
    eq(s.notion.said(s.page(id)), [])


def test_work_that_goes_on_after_a_kill(s):
    """A sync must not take a value that a killed one wrote to the page for a move, or an edit, of a person."""
    for kind in ("kill before", "kill after"):
        for status, path in itertools.product(("Review", "Done"), ("pages/[^/]*$", "markdown$")):
            id = s.create("zero", "--status", "backlog")
            s.sync()
            s.pawl("update", id, "--status", "ready", "--title", "first", "--description", "first text")
            killed(s, kind, path, "PATCH")
            s.pawl("claim", id)
            s.pawl("update", id, "--title", "second", "--description", "second text")
            s.pawl(*(["review", id, "--summary", "x"] if status == "Review" else ["done", id]))
            finished(s, id, "second", status)
            eq(s.notion.page_of(s.page(id))["markdown"], "second text")
            eq(s.task(id)["description"], "second text")
            # the lock of an agent was on its way
            id = s.create("held")
            s.sync()
            s.pawl("claim", id)
            s.pawl("update", id, "--description", "text")
            killed(s, kind, path, "PATCH")
            s.pawl(*(["review", id, "--summary", "x"] if status == "Review" else ["done", id]))
            finished(s, id, "held", status)
            eq(s.value(id, "Lock Token"), "")


def cut_state(s, last):
    """As if the sync had been killed earlier: takes the lines away that come after the last one with this text."""
    folder = s.dir + "/state/pawl/sync/"
    with open(folder + os.listdir(folder)[0], "r+") as f:
        lines = f.readlines()
        kept = max(i for i, line in enumerate(lines) if last in line) + 1
        assert kept < len(lines), lines
        f.truncate(len("".join(lines[:kept]).encode()))


def test_a_killed_sync_makes_no_second_task(s):
    """The queue has the task, and the state only that it is being made."""
    s.notion.new("text", Title="fresh", Status="Ready")
    killed(s, "kill before", "pages/[^/]*$", "PATCH")
    cut_state(s, '"making":"task"')
    s.sync()
    s.quiet()
    eq(([t["title"] for t in s.tasks()], len(s.notion.alive()), s.value("t1", "Status")), (["fresh"], 1, "Ready"))


def test_work_that_goes_on_after_a_killed_pull(s):
    """The queue has a move of a person, and the state does not say so. An agent then does what the person asked for."""
    s.create("parent")
    for kind, cut in (("kill before", False), ("kill before", True), ("kill after", False)):
        id = s.create("zero")
        bring(s, id, "Review")
        s.sync()
        s.notion.edit(s.page(id), Title="clearer", Status="In Progress", **{"Parent-task": [s.page("t1")]})
        s.pawl("update", id, "--priority", "9")  # so that there is something to write
        killed(s, kind, "pages/[^/]*$", "PATCH")
        if cut:
            cut_state(s, '"pull"')
        eq((s.task(id)["title"], s.task(id)["status"]), ("clearer", "In Progress"))
        s.pawl("claim", id)
        s.pawl("update", id, "--title", "an agent's", "--parent", "")
        s.pawl("review", id, "--summary", "again")
        finished(s, id, "an agent's", "Review")
        eq((s.task(id).get("parent"), s.value(id, "Parent-task")), (None, []))
        # a person continues as well
        s.notion.edit(s.page(id), Status="In Progress")
        s.pawl("update", id, "--priority", "10")
        killed(s, kind, "pages/[^/]*$", "PATCH")
        if cut:
            cut_state(s, '"pull"')
        s.notion.edit(s.page(id), Title="a person's", Status="Canceled")
        finished(s, id, "a person's", "Canceled")


def test_a_sync_that_is_killed_before_its_pull(s):
    """The state has the intention, and the queue nothing of it."""
    for change in ([], ["--title", "an agent's"]):
        id = s.create("zero")
        bring(s, id, "Review")
        s.sync()
        s.notion.edit(s.page(id), Title="a person's", Status="In Progress")
        s.pawl("update", id, "--priority", "9")
        kept = {name: open(os.path.join(s.dir, name), "rb").read() for name in os.listdir(s.dir) if name.startswith("queue.db")}
        killed(s, "kill before", "pages/[^/]*$", "PATCH")
        for name in os.listdir(s.dir):
            if name.startswith("queue.db"):
                os.unlink(os.path.join(s.dir, name))
        cut_state(s, '"pull"')
        for name, data in kept.items():
            with open(os.path.join(s.dir, name), "wb") as f:
                f.write(data)
        eq((s.task(id)["title"], s.task(id)["status"]), ("zero", "Review"))
        if change:
            s.pawl("update", id, *change)
        finished(s, id, "a person's", "In Progress")


# ---- a server that fails


def test_limits_conflicts_and_gateways(s):
    s.create("one", "--description", "text")
    s.notion.new("body", Title="two", Status="Ready")
    for i, kind in enumerate([409, 429, 500, 502, 503, 529, "close", 409, 429, 529]):
        s.notion.break_it(kind, nth=2 + 2 * i)
    s.sync()
    eq((len(s.tasks()), len(s.notion.alive())), (2, 2))
    s.quiet()


def test_one_bad_page_does_not_stop_the_others(s):
    for i in range(4):
        s.create(f"task {i}")
        s.notion.new("", Title=f"page {i}", Status="Ready")
    s.notion.break_it(400, path="pages$", method="POST", nth=2)
    s.notion.break_it(400, path="pages/", method="PATCH", nth=2)
    got = s.sync()
    eq((len(s.tasks()), len(s.notion.alive())), (8, 7))
    assert any("Title is not valid" in w for w in got["warnings"]), got
    s.sync()
    eq((len(s.tasks()), len(s.notion.alive())), (8, 8))
    s.quiet()


def test_lost_answers_make_nothing_twice(s):
    """Each changing request is carried out, and answered by 502 or 503, by half an answer, or not at all."""
    for kind in ("502 after", "503 after", "garbage after", "close"):
        for path, method in (("pages$", "POST"), ("pages/[^/]*$", "PATCH"), ("markdown", "PATCH"), ("comments", "POST")):
            if kind == "garbage after" and method == "PATCH":
                continue
            id = s.create(f"{kind} {path}", "--description", "text")
            if path == "comments":
                s.sync()
                s.notion.edit(s.page(id), Summary="mine")
            s.notion.break_it(kind, path=path, method=method)
            s.sync()
            s.page(id)
            if path == "comments":
                eq(len(s.notion.said(s.page(id))), 1)
            s.quiet()
    eq(len(s.notion.alive()), len(s.tasks()))


def test_five_lost_answers_end_the_sync(s):
    """Nothing is made, and nobody knows that. The next sync makes it once."""
    s.create("one")
    s.notion.break_it(500, path="pages$", method="POST", times=5)
    got = s.sync(code=30)
    assert "make the page of t1" in got["error"]["message"] and got["error"]["hint"], got
    eq(len(s.notion.alive()), 0)
    s.sync()
    s.page("t1")
    s.notion.edit(s.page("t1"), Summary="mine")
    s.notion.break_it(500, path="comments$", method="POST", times=5)
    got = s.sync(code=30)
    assert "add a comment" in got["error"]["message"] and got["error"]["hint"], got
    s.sync()
    eq((len(s.notion.said(s.page("t1"))), s.value("t1", "Summary")), (1, ""))
    s.quiet()


def test_a_refused_token_stops_the_sync(s):
    s.create("one")
    s.sync()
    for status, says, hint in ((401, "refuses the token", "NOTION_TOKEN"), (403, "Insufficient permissions", "share the database")):
        s.pawl("update", "t1", "--priority", str(status - 400))
        s.notion.break_it(status, path="pages/", method="PATCH")
        got = s.sync(code=40)
        assert says in got["error"]["message"] and hint in got["error"]["hint"], got
        s.sync()
        eq(s.value("t1", "Priority"), status - 400)


def test_reads_that_are_behind(s):
    """Right after a sync, reads show the state before it."""
    s.env["NOTION_SETTLE_MS"] = "1500"
    s.create("one", "--description", "old text")
    s.create("two")
    began = time.time()
    s.sync()
    lag = max(1.2, 3 * (time.time() - began))  # on a slow machine, too, the next sync begins while reads are behind
    s.env["NOTION_SETTLE_MS"] = str(int(1000 * lag) + 300)
    time.sleep(lag + 0.4)
    s.notion.lag = lag
    first = s.page("t1")
    s.pawl("update", "t1", "--title", "new", "--priority", "8", "--description", "new text")
    s.pawl("claim", "t2")
    for _ in range(4):
        s.sync()
    eq((s.task("t1")["title"], s.task("t1")["priority"], s.task("t1")["description"]), ("new", 8, "new text"))
    eq((s.task("t2")["status"], s.notion.said(s.page("t2"))), ("In Progress", []))
    eq(s.value("t1", "Task name"), "new")
    # the page that a lost answer left is found once the index has it
    s.create("three")
    s.notion.break_it("502 after", path="pages$", method="POST")
    s.sync()
    s.page("t3")
    time.sleep(lag + 0.1)
    s.notion.lag = 0
    s.sync()
    s.quiet()
    eq((s.value("t1", "Task name"), s.notion.page_of(first)["markdown"]), ("new", "new text"))


def test_the_rate_limit_is_kept(s):
    """A client that is too fast is told how long to wait."""
    s.notion.rate = 4  # less than a loaded machine sends
    for i in range(6):
        s.notion.new("", Title=f"more {i}", Status="Ready")
    s.sync()
    assert s.notion.limited > 0
    eq(len(s.tasks()), 6)


def test_the_usual_rate_is_three_in_a_second(s):
    s.env.pop("NOTION_RATE")
    s.sync()
    at = len(s.notion.seen)
    s.notion.new("", Title="page", Status="Ready")
    s.sync()
    times = [t for t, _, _ in s.notion.seen[at:]]
    assert len(times) >= 6, times
    assert times[-1] - times[0] >= (len(times) - 1 - 3) / 3 - 0.02, times


# ---- bad input


def refused(s, code, says, *words, **env):
    before = s.events(), copy.deepcopy(s.notion.pages)
    got = s.sync(*words, code=code, **env)
    assert says in got["error"]["message"], got
    assert got["error"]["hint"], got
    eq((s.events(), s.notion.pages), before)


def test_bad_tokens_and_databases(s):
    s.create("one")
    s.notion.new("", Title="two", Status="Ready")
    refused(s, 40, "refuses the token", NOTION_TOKEN="wrong")
    refused(s, 40, "no token", NOTION_TOKEN="")
    refused(s, 40, "does not have a token", NOTION_TOKEN="two words")
    refused(s, 40, "NOTION_TOKEN_FILE", NOTION_TOKEN="", NOTION_TOKEN_FILE="/nowhere")
    refused(s, 40, "could be read on its way", NOTION_API_BASE="http://192.0.2.1")
    refused(s, 40, "could be read on its way", NOTION_API_BASE="ftp://x")
    with open(s.dir + "/token", "w") as f:
        f.write(SECRET + "\n")
    for board, code, says in (
        ("notion:0123456789abcdef0123456789abcdef", 40, "Could not find database"),
        ("notion:nothing", 2, "not the id"),
        ("notion:", 2, "no database"),
        ("trello:x", 2, "not a board"),
    ):
        got = s.pawl("sync", board, code=code, NOTION_TASKS_DB_ID="")
        assert says in got["error"]["message"], got
    s.pawl("sync", "notion:", NOTION_TASKS_DB_ID=s.notion.database, NOTION_TOKEN="", NOTION_TOKEN_FILE=s.dir + "/token")
    eq(len(s.tasks()), 2)
    address = "https://www.notion.so/me/Tasks-" + s.notion.database.replace("-", "") + "?v=1"
    s.pawl("sync", "notion:" + address)


def test_no_server(s):
    s.create("one")
    dead = socket.socket()
    dead.bind(("127.0.0.1", 0))
    url = "http://127.0.0.1:%d" % dead.getsockname()[1]
    refused(s, 30, "no answer", NOTION_API_BASE=url, PAWL_TIMEOUT="1s")
    dead.close()


def test_redirects_and_garbage(s):
    s.create("one")
    for kind, code, says in (("redirect", 40, "redirects"), ("garbage", 30, "not a JSON object")):
        for nth in range(1, 5):
            s.notion.faults.clear()
            s.notion.break_it(kind, nth=nth, times=1000)
            refused(s, code, says)
    s.notion.faults.clear()
    s.sync()
    s.quiet()


def test_a_database_that_lacks_properties(s):
    s.create("one")
    n = s.notion
    del n.schema["Lock Token"], n.schema["Pawl ID"]
    n.schema["Class"]["options"] = n.schema["Class"]["options"][:2]
    refused(s, 40, "'Lock Token' (rich_text)")
    refused(s, 40, "Class has no option 'Standard'")
    refused(s, 40, "'Pawl ID' (rich_text)", "--check")
    s.sync("--check", "--add-options")
    assert "Lock Token" not in n.schema
    s.sync("--add-options")
    eq(n.schema["Lock Token"]["type"], "rich_text")
    eq([o["name"] for o in n.schema["Class"]["options"]], standin.CLASSES)
    eq(s.value("t1", "Class"), "Standard")
    # a wrong type is for people to mend
    n.schema["Priority"]["type"] = "rich_text"
    s.notion.pages.clear()
    refused(s, 40, "'Priority' is rich_text, not number", "--add-options")


def test_only_the_needed_properties(s):
    for name in ("Due", "Assignee", "Blocker Reason", "Unblock Action", "Summary", "Started At", "Done At", "Parent-task", "Sub-tasks"):
        del s.notion.schema[name]
    s.create("one", "--due", "2027-01-01")
    s.create("two", "--parent", "t1")
    s.sync()
    s.pawl("claim", "t2")
    s.sync()
    eq(s.value("t2", "Status"), "In Progress")
    s.quiet()


def test_hostile_texts(s):
    texts = ["\x1b[2J\u202e'; DROP TABLE tasks;--", "😀" * 120, '"}],"x":{"', "$(touch /tmp/x) `id`", "\ud7ff\uffff"]
    for text in texts:
        s.notion.new(text * 200, Title=text, Status="Ready", Agent_Run=text, Summary=text)
        s.create(text, "--description", text)
    long = "ü😀x" * 37000  # more bytes than a page takes, with the limit of a rich text in the middle of a character
    s.pawl("claim", "t1")
    with open(s.dir + "/long", "w") as f:
        f.write(long)
    with open(s.dir + "/long") as f:
        subprocess.run([PAWL, "review", "t1", "--summary", "-"], env=s.env, cwd=s.dir, stdin=f, check=True, capture_output=True)
    s.sync()
    s.quiet()
    eq(sorted(t["title"] for t in s.tasks()), sorted(texts * 2))
    got = s.value("t1", "Summary")
    eq(got, long)
    out = s.run("sync", "notion:" + s.notion.database)
    assert "\x1b" not in out.stdout + out.stderr


# ---- many pages


def test_more_pages_than_a_query_shows(s):
    n = s.notion
    n.rows_max = 100 if PAGES < 10000 else 10000
    for i in range(PAGES):
        n.skew = i * 2.0 if PAGES < 10000 else i * 0.02
        n.new("", Title=f"page {i}", Status="Ready")
    done = s.sync()["sync"]
    eq((done["tasks_created"], len(s.tasks())), (PAGES, PAGES))
    eq(len({n.value(p["id"], "Pawl ID") for p in n.alive()}), PAGES)
    s.sync()  # reads each text once more: a PATCH can hide an edit
    # the next one reads the changes
    n.skew += 3600
    changed = [p["id"] for p in n.alive()][7]
    n.edit(changed, Title="changed")
    done = s.sync()["sync"]
    eq(done["tasks_updated"], 1)
    assert done["requests"] < 50 + PAGES / 100, done  # the sync itself edited all pages, but nobody their texts


def test_pages_of_one_minute_that_no_query_shows(s):
    s.notion.rows_max = 10
    for i in range(11):
        s.notion.new("", Title=f"page {i}", Status="Ready")
    got = s.sync(code=40)
    assert "more pages of one minute" in got["error"]["message"], got


# ---- one at a time, and forever


def test_one_sync_at_a_time(s):
    s.create("one")
    s.sync()
    folder = s.dir + "/state/pawl/sync"
    with open(os.path.join(folder, os.listdir(folder)[0])) as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        refused(s, 20, "another `pawl sync`")
    s.sync()


def test_watch(s):
    s.create("one")
    p = subprocess.Popen([PAWL, "sync", "notion:" + s.notion.database, "--watch", "--every", "20ms"],
                         env=s.env, cwd=s.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def until(test):
        end = time.time() + 20
        while not test():
            assert time.time() < end and p.poll() is None, "nothing happens"
            time.sleep(0.02)

    try:
        until(lambda: s.notion.alive())
        s.notion.new("", Title="two", Status="Ready")
        until(lambda: len(s.tasks()) == 2)
        s.notion.break_it(500, times=3)  # a bad time passes
        s.create("three")
        until(lambda: len(s.notion.alive()) == 3)
    finally:
        p.kill()
        p.communicate()
    eq((len(s.tasks()), len(s.notion.alive())), (3, 3))


def test_progress_is_for_people(s):
    for i in range(40):
        s.notion.new("", Title=f"page {i}", Status="Ready")
    out = s.run("sync", "notion:" + s.notion.database, NOTION_RATE="60")
    assert "tasks" in out.stdout + out.stderr
    assert "\r" not in out.stdout


# ---- any store


def short_round(s):
    n = s.notion
    s.create("from here", "--description", "text")
    n.new("their text", Title="from there", Status="Ready")
    s.sync()
    n.edit(s.page("t1"), Title="edited there", Status="Backlog")
    n.edit(s.page("t2"), Summary="not yours")
    n.say(s.page("t2"), "a remark")
    s.pawl("update", "t2", "--priority", "8")
    s.pawl("claim", "t2")
    s.sync()
    t = s.task("t1")
    eq((t["title"], t["status"], s.task("t2")["description"]), ("edited there", "Backlog", "their text"))
    eq([s.value("t2", f) for f in ("Priority", "Status", "Summary")], [8, "In Progress", ""])
    assert s.value("t2", "Lock Token").startswith("pawl:")
    eq((len(n.said(s.page("t2"))), s.comments("t2")), (1, ["from Notion: a remark"]))
    s.quiet()
    eq((len(s.tasks()), len(n.alive())), (2, 2))


def test_the_files_store(s):
    s.env["PAWL_STORE"] = f"files:{s.dir}/locks"
    s.pawl("init")
    short_round(s)


def test_the_git_store(s):
    s.env["PAWL_STORE"] = f"git:{s.dir}/queue.git"
    s.pawl("init")
    short_round(s)


def with_server(s, fn):
    """Calls fn while the queue is that of a server; its argument is the environment of the server."""
    here = {**s.env, "PAWL_SERVER_STATE": s.dir + "/served"}

    def beside(*words):
        return subprocess.run([PAWL, *words], env=here, cwd=s.dir, capture_output=True, check=True, text=True).stdout.strip()

    token = beside("token", "create", "syncer", "--role", "admin", "--agent", "*", "-q")
    log = s.dir + "/serve.log"
    with open(log, "w") as f:
        server = subprocess.Popen([PAWL, "serve", "--listen", "127.0.0.1:0", "--log", "none"], env=here, cwd=s.dir,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=f)
    s.stop_server = server.kill
    try:
        url = None
        while not url:
            assert server.poll() is None, "the server ended"
            time.sleep(0.02)
            with open(log) as f:
                url = re.search(r"^pawl: open (\S+)", f.read(), re.M)
        s.env.update(PAWL_STORE=url[1].rstrip("/"), PAWL_SERVER_TOKEN=token)
        fn(beside, here)
    finally:
        server.kill()
        server.wait()


def test_a_server(s):
    with_server(s, lambda *_: short_round(s))


def test_a_server_that_is_gone_is_not_another_queue(s):
    def run(*_):
        s.create("one")
        s.sync()
        s.notion.break_it(s.stop_server, path="data_sources/[^/]*$", method="GET")
        got = s.sync(code=30, PAWL_TIMEOUT="1s")
        assert "another queue" not in got["error"]["message"], got

    with_server(s, run)


def test_a_server_that_refuses_our_token(s):
    """The token of the queue's server ends while a sync runs: no edit of a person is taken back for that."""

    def run(beside, here):
        s.create("one")
        s.sync()
        page = s.page("t1")
        s.notion.edit(page, Title="edited there", Priority=7)
        s.notion.break_it(lambda: beside("token", "revoke", "syncer"), path="/query$", method="POST")
        got = s.sync(code=40)
        eq(got["error"]["fault"], "unauthorized")
        assert "PAWL_SERVER_TOKEN" in got["error"]["hint"], got
        eq((s.notion.said(page), s.notion.value(page, "Task name")), ([], "edited there"))
        s.env = here
        s.pawl("lock", "break", "@sync", "--reason", "its token was revoked")
        s.sync()
        eq(s.task("t1")["title"], "edited there")

    with_server(s, run)


# ---- kill -9


def kill_scene():
    """Everything that a sync can have to do."""
    s = Scene()
    s.pawl("init")
    n = s.notion
    for title in ("held", "edited here", "edited there", "reviewed", "bad edit", "foreign", "commented"):
        s.create(title, "--description", f"about {title}")
    s.sync()
    s.pawl("claim", "t1")
    s.pawl("update", "t2", "--title", "edited by an agent", "--description", "new text")
    s.pawl("claim", "t4")
    s.pawl("review", "t4", "--summary", "done")
    s.sync()
    n.edit(s.page("t3"), Title="edited by a person", Priority=9)
    n.write(s.page("t3"), "text of a person")
    n.edit(s.page("t4"), Status="Done")
    n.edit(s.page("t5"), Status="Review", Summary="not yours")
    n.edit(s.page("t6"), Status="In Progress", Lock_Token="x-1", Lock_Expires=soon(3600), Agent_Run="other")
    n.say(s.page("t7"), "a remark")
    n.new("fresh text", Title="fresh from a person", Status="Ready", Priority=5)
    n.new("", Title="second from a person", Status="Backlog", **{"Parent-task": [s.page("t2")]})
    s.pawl("update", "t2", "--priority", "6", "--description", "newer text")
    s.create("fresh from an agent", "--description", "with text")
    s.create("its part", "--parent", "t8")
    return s


def fork(s):
    """The same scene once more."""
    n = standin.Notion()
    for name in ("schema", "pages", "past", "comments", "number", "bot", "person", "database", "source"):
        setattr(n, name, copy.deepcopy(getattr(s.notion, name)))
    other = Scene(notion=n)
    shutil.rmtree(other.dir)
    shutil.copytree(s.dir, other.dir)
    return other


def check_scene(s, where):
    n = s.notion
    tasks = {t["title"]: t for t in s.tasks()}
    try:
        eq(sorted(tasks), sorted(["held", "edited by an agent", "edited by a person", "reviewed", "bad edit", "foreign", "commented",
                                  "fresh from a person", "second from a person", "fresh from an agent", "its part"]))
        eq(len(s.tasks()), 11)
        eq(sorted(n.value(p["id"], "Pawl ID") for p in n.alive()), sorted(t["id"] for t in s.tasks()))
        eq((tasks["held"]["fence"], tasks["held"]["lock"]["holder"]), (1, "al"))
        eq(tasks["reviewed"]["status"], "Done")
        eq((tasks["edited by a person"]["priority"], tasks["edited by a person"]["description"]), (9, "text of a person"))
        eq((s.value("t2", "Priority"), n.page_of(s.page("t2"))["markdown"]), (6, "newer text"))
        eq((s.value("t5", "Status"), s.value("t5", "Summary"), len(n.said(s.page("t5")))), ("Ready", "", 1))
        eq(s.comments("t7"), ["from Notion: a remark"])
        eq(tasks["second from a person"]["parent"], "t2")
        eq(s.value(tasks["its part"]["id"], "Parent-task"), [s.page(tasks["fresh from an agent"]["id"])])
        eq(n.page_of(s.page(tasks["fresh from an agent"]["id"]))["markdown"], "with text")
        s.pawl("claim", "t6", code=20)
        events = [e["event"] for e in s.events()]
        eq((events.count("approved"), events.count("comment"), events.count("created")), (1, 1, 11))
        s.quiet()
    except AssertionError as e:
        raise AssertionError(f"killed {where}: {e}")


# The last ones meet the steps that come between two requests: changes of the queue, lines of the state file.
KINDS = ["kill before", "kill after", *(f"kill answered {ms}" for ms in (0, 0.2, 0.5, 1, 2, 4))]


def test_kill_at_any_point(_s):
    base = kill_scene()
    whole = fork(base)
    try:
        at = len(whole.notion.seen)
        whole.sync()
        requests = len(whole.notion.seen) - at
        whole.sync()
        check_scene(whole, "nowhere")
    finally:
        whole.close()
    points = [(kind, i) for i in range(1, requests + 1) for kind in KINDS]
    step = len(points) / (len(points) if KILLS == "all" else int(KILLS))
    few = [points[int(i * step)] for i in range(int(len(points) / step))]
    try:
        for kind, i in few:
            s = fork(base)
            try:
                s.notion.break_it(kind, nth=i)
                with s.notion.lock:  # no request is answered before the victim is known
                    p = subprocess.Popen([PAWL, "sync", "notion:" + s.notion.database], env={**s.env, "PAWL_AGENT": ""},
                                         cwd=s.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    s.notion.victim = p.pid
                p.wait()
                s.notion.victim = None
                s.notion.faults.clear()
                s.sync()
                s.sync()
                check_scene(s, f"{kind} {i}")
            finally:
                s.close()
    finally:
        base.close()
    print(f"# {len(few)} of {len(points)} points")


def main():
    global KILLS, PAGES
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", default="8")
    parser.add_argument("--pages", type=int, default=301)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--times", action="store_true")
    args = parser.parse_args()
    failed = False
    KILLS, PAGES = args.kills, args.pages
    tests = [(k, v) for k, v in globals().items() if k.startswith("test_") and (not args.names or any(n in k for n in args.names))]
    tests.sort(key=lambda t: t[1] not in (test_kill_at_any_point, test_reads_that_are_behind))  # they take longest
    print(f"1..{len(tests)}", flush=True)
    # most of them wait most of the time
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(one, tests)
        for i, ((name, _), (why, seconds)) in enumerate(zip(tests, results), 1):
            print(f"{'not ok' if why else 'ok'} {i} {name[5:].replace('_', ' ')}", flush=True)
            print("".join("# " + line + "\n" for line in why.splitlines()), end="", flush=True)
            if args.times:
                print(f"# {seconds:.1f} s", flush=True)
            failed |= bool(why)
    return failed


def one(named):
    """Runs a test: why it failed, and how long it took."""
    s = Scene()
    began = time.time()
    try:
        s.pawl("init")
        named[1](s)
        return "", time.time() - began
    except Exception:
        return traceback.format_exc(), time.time() - began
    finally:
        s.close()


if __name__ == "__main__":
    sys.exit(main())
