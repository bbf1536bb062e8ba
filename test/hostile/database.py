#!/usr/bin/env python3
"""database.py PAWL FOLDER: a stand-in for PostgreSQL that answers every statement with a row of a table of bad answers.

It speaks as much of the protocol (version 3) as libpq needs to connect and to read results. Every command must end with
a code of its own, in time, and print nothing that acts on a terminal. Each row meets a third of the commands, or all
with ANSWERS_SHARE=1. One line for each failure; the exit code is 0 if there is none.
"""

import os
import re
import socketserver
import struct
import subprocess
import sys
import threading

PAWL, FOLDER = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
ESC = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"
LINES = "good\nINJECTED line\r\nINJECTED too"
SSL, GSS, CANCEL = 80877103, 80877104, 80877102


def message(kind, body=b""):
    return kind + struct.pack(">I", len(body) + 4) + body


def fields(kind, **texts):
    """An error (E) or a notice (N)."""
    body = b"".join(k.encode() + (v.encode() if isinstance(v, str) else v) + b"\0" for k, v in texts.items())
    return message(kind, body + b"\0")


def notice(text, severity="NOTICE"):
    return fields(b"N", S=severity, V=severity, C="00000", M=text)


def columns(n):
    one = b"x\0" + struct.pack(">IhIhih", 0, 0, 20, 8, -1, 1)
    return message(b"T", struct.pack(">h", n) + one * n)


def row(values):
    out = struct.pack(">h", len(values))
    for v in values:
        out += struct.pack(">i", -1) if v is None else struct.pack(">i", len(v)) + v
    return message(b"D", out)


NUMBER = struct.pack(">q", 1)
END = message(b"C", b"SELECT 1\0")


def rows(width, value, count=1):
    return dict(columns=width, rows=row([value] * width) * count)


LIST = struct.pack(">IIIII", 1, 0, 17, 0x7FFFFFFF, 1)  # an array of two billion items that are not there
ANSWERS = {
    "rows without columns": rows(0, None),
    "one column, without a value": rows(1, None),
    "one column": rows(1, NUMBER),
    "40 columns without values": rows(40, None),
    "40 numbers": rows(40, NUMBER),
    "40 numbers without end": rows(40, struct.pack(">q", (1 << 63) - 1)),
    "40 numbers below zero": rows(40, struct.pack(">q", -(1 << 63))),
    "40 bytes that are not text": rows(40, b"\xff\xfe\0\x80"),
    "40 texts with escape codes": rows(40, ESC.encode()),
    "40 texts with lines": rows(40, LINES.encode()),
    "40 empty values": rows(40, b""),
    "40 lists without their items": rows(40, LIST),
    "40 keys of a task": rows(40, b"task/t1"),
    "40 keys that lead elsewhere": rows(40, b"task/../../x"),
    "no row": rows(40, NUMBER, 0),
    "5,000 rows": rows(40, NUMBER, 5000),
    "values of 1 MB": rows(8, b"x" * 1_000_000),
    "an error with escape codes": dict(error=fields(b"E", S="ERROR", V="ERROR", C="XX000", M=ESC, D=ESC, H=ESC)),
    "an error with lines": dict(error=fields(b"E", S="ERROR", V="ERROR", C="XX000", M=LINES)),
    "an error whose state has escape codes": dict(error=fields(b"E", S="ERROR", V="ERROR", C=ESC, M="no")),
    "an error without a text": dict(error=fields(b"E", S="ERROR", V="ERROR", C="XX000")),
    "an error without anything": dict(error=message(b"E", b"\0")),
    "an end of the session": dict(error=fields(b"E", S="FATAL", V="FATAL", C="57P01", M=ESC)),
    "a notice before each answer": dict(rows(40, NUMBER), before=notice(ESC) + notice(LINES, "WARNING")),
    "a message that does not exist": dict(rows(1, NUMBER), before=message(b"?", b"x")),
    "a length below zero": dict(rows(1, NUMBER), before=b"D" + struct.pack(">i", -5)),
    "a row longer than its message": dict(columns=1, rows=message(b"D", struct.pack(">hi", 1, 1 << 30))),
    "a notification with escape codes": dict(rows(1, NUMBER), before=message(b"A", struct.pack(">I", 1) + ESC.encode() + b"\0" + ESC.encode() + b"\0")),
    "notices while it connects": dict(rows(40, NUMBER), greeting=notice(ESC) + notice(LINES, "WARNING")),
    "a refusal with escape codes while it connects": dict(refusal=fields(b"E", S="FATAL", V="FATAL", C="28P01", M=ESC, H=ESC)),
    "a refusal with lines while it connects": dict(refusal=fields(b"E", S=LINES, V=LINES, C=ESC, M=LINES)),
    "a refusal of an old server": dict(refusal=b"E" + ESC.encode() + b"\0"),
    "a version with escape codes": dict(rows(40, NUMBER), version=ESC),
}
COMMANDS = ["list", "create New", "doctor", "status", "queues", "log", "next --claim", "show t1", "export -o -"]


# What a client asks first. With good answers to these it continues to its tasks.
GOOD = {
    b"pg_backend_pid()": dict(columns=4, rows=row([NUMBER] * 4)),
    b"a.version,n.q": dict(columns=4, rows=row([struct.pack(">q", 2), NUMBER, struct.pack(">q", 1_800_000_000_000), b"a" * 36])),
}


class Standin:
    answer = ANSWERS["no row"]
    deep = False  # opens the queue with good answers


def answer_to(sql):
    for part, good in GOOD.items():
        if Standin.deep and part in sql:
            return good
    return Standin.answer


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            if self.greet():
                self.talk()
        except (ConnectionError, struct.error):
            pass

    def greet(self):
        a = Standin.answer
        while True:
            (size,) = struct.unpack(">I", self.rfile.read(4))
            body = self.rfile.read(size - 4)
            (code,) = struct.unpack(">I", body[:4])
            if code == CANCEL:
                return False
            if code not in (SSL, GSS):
                break
            self.wfile.write(b"N")
        if "refusal" in a:
            self.wfile.write(a["refusal"])
            return False
        self.wfile.write(message(b"R", struct.pack(">I", 0)))
        for name, value in (("server_version", a.get("version", "16.1")), ("server_encoding", "UTF8"), ("client_encoding", "UTF8"),
                            ("in_hot_standby", "off"), ("standard_conforming_strings", "on")):  # fmt: skip
            self.wfile.write(message(b"S", name.encode() + b"\0" + value.encode() + b"\0"))
        self.wfile.write(a.get("greeting", b"") + message(b"K", struct.pack(">II", 1, 1)) + message(b"Z", b"I"))
        return True

    def talk(self):
        failed, known, a = False, {}, {}
        while True:
            kind = self.rfile.read(1)
            if kind in (b"", b"X"):
                return
            (size,) = struct.unpack(">I", self.rfile.read(4))
            body = self.rfile.read(size - 4)
            if kind == b"P":
                name, sql = body.split(b"\0", 2)[:2]
                known[name] = answer_to(sql)
            elif kind == b"B":
                a = known.get(body.split(b"\0", 2)[1], Standin.answer)
            elif kind == b"Q":
                a = answer_to(body)
            if kind in (b"S", b"Q"):
                failed = False
                self.wfile.write((self.result(a) if kind == b"Q" else b"") + message(b"Z", b"I"))
            elif failed:
                continue
            elif kind == b"P":
                self.wfile.write(message(b"1"))
            elif kind == b"B":
                self.wfile.write(message(b"2"))
            elif kind == b"D" and "error" not in a:
                self.wfile.write(a.get("before", b"") + columns(a["columns"]))
            elif kind == b"E":
                self.wfile.write(a.get("error") or a["rows"] + END)
                failed = "error" in a

    def result(self, a):
        return a.get("error") or columns(a["columns"]) + a["rows"] + END


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True

    def handle_error(self, request, client_address):
        pass


CONTROL = re.compile(rb"[\0-\x08\x0b-\x1f\x7f]")
DECEIVES = re.compile("[\x80-\x9f\u202e]")


def trial(uri, command):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PAWL_", "PG", "CLAUDE")) or k == "PAWL_MODULE_DIR"}
    env.update(PAWL_AGENT="ann", PAWL_NET_TIMEOUT="3s")
    args = [PAWL, "--store", uri, "--timeout", "1s"] + command.split()
    try:
        return subprocess.run(args, capture_output=True, stdin=subprocess.DEVNULL, env=env, cwd=FOLDER, timeout=90, check=False)
    except subprocess.TimeoutExpired as e:
        return subprocess.CompletedProcess(args, -1, e.stdout or b"", e.stderr or b"")


def faults(p):
    out = p.stdout + p.stderr
    if not 0 <= p.returncode <= 100:
        yield f"exit code {p.returncode}"
    if CONTROL.search(out):
        yield "it prints control characters"
    if DECEIVES.search(out.decode("utf-8", "replace")):
        yield "it prints invisible characters"
    if re.search(rb"^\W*INJECTED", out, re.M):
        yield "it prints a line of the server's"


def main():
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    uri = f"postgres://x@127.0.0.1:{server.server_address[1]}/db?sslmode=disable"
    bad = ran = 0
    for turn, (name, Standin.answer) in enumerate(ANSWERS.items()):
        some = COMMANDS if "connects" in name or os.environ.get("ANSWERS_SHARE") == "1" else COMMANDS[turn % 3 :: 3]
        for number, command in enumerate(["list"] + some):
            Standin.deep = number > 0
            p = trial(uri, command)
            ran += 1
            for fault in faults(p):
                bad += 1
                print(f"{command}: {name}: {fault}: {(p.stdout + p.stderr)[:200]}")
    print(f"{ran} trials, {bad} failures")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
