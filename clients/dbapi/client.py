"""A client program for any Python driver that follows DB-API 2 (PEP 249): one thread for each session, or one process where a
driver keeps Python's other threads waiting.

It speaks the protocol of docs/guide/client-programs.md over its standard input and output. It needs Python 3.8 or newer and
the driver. What it owns: which errors are definite, and how statements, parameters and rows are put to a driver.
"""

import ctypes
import importlib
import json
import os
import queue
import signal
import sys
import threading

VERSION = 1

# What an error says, by its SQLSTATE. Source: PostgreSQL documentation, "PostgreSQL Error Codes" (Appendix A), whose classes are
# those of the SQL standard. "Definite" are the classes that a server raises before it writes its commit record: feature not
# supported, cardinality, data, integrity, transaction state, rollback, syntax or access, check option, PL/pgSQL. Not
# definite: 40003, which says itself that it does not know, and of ODBC (Appendix A) 25S01 and 25S02, "transaction state unknown" and "is still
# active"; 08 (connection), 53 (resources), 57 (operator intervention, whose
# cancel may strike behind the commit record), 58 and XX (system).
DEFINITE_CLASSES = {"0A", "21", "22", "23", "25", "40", "42", "44", "P0"}
INDEFINITE_STATES = {"40003", "25S01", "25S02"}
SERIALIZATION_STATES = {"40001", "40P01"}
READ_ONLY_STATES = {"25006"}
CONNECTION_STATES = {"57P01", "57P02", "57P03", "57P04", "57P05", "53300"}

# The same by the number of MySQL and MariaDB. Source: MariaDB documentation, "MariaDB Error Code Reference"; MySQL manual, "InnoDB
# Error Handling"; Galera documentation, "Certification-Based Replication".
DEFINITE_NUMBERS = {
    1213: "serialization",  # deadlock, failed certification
    1205: "serialization",  # lock wait timeout
    1020: "serialization",  # changed since the last read
    1047: "read-only",  # outside the primary component
    1290: "read-only",  # --read-only
    1792: "read-only",  # read-only transaction
    1836: "read-only",  # read-only mode
    1114: "other",  # the table is full
    1364: "other",  # no default for a field
    1366: "other",  # values that strict mode refuses
    1406: "other",
    1264: "other",
    1062: "other",  # duplicate entry
    1064: "other",  # syntax
    1146: "other",  # no such table
    1054: "other",  # no such column
}
# ER_TRANSACTION_ROLLBACK_DURING_COMMIT: a failed certification, and what a member of Group Replication answers that cannot learn what
# became of transactions which it had sent to the group. Source: MySQL, plugin/group_replication, plugin_utils.h.
ROLLBACK_DURING_COMMIT = 3101
# Numbers that say more than the SQLSTATE which comes with them (08S01 and 40000).
NUMBERS_BEFORE_STATES = {1047, ROLLBACK_DURING_COMMIT}
CONNECTION_NUMBERS = {1040, 1053, 1152, 1158, 1159, 1160, 1161, 1184, 1203, 1226, 1927, 2002, 2003, 2006, 2013, 2055}

# Of errors without a code, by their class. Source: PEP 249, "Exceptions": these four are about the statement and its values;
# OperationalError, InternalError, InterfaceError and all others may be about anything, a lost connection at COMMIT among it.
DEFINITE_EXCEPTIONS = {"IntegrityError", "ProgrammingError", "DataError", "NotSupportedError"}

# Drivers of databases whose transactions are serializable and have no other level. Source: SQLite documentation, "Isolation In
# SQLite"; Apache Ignite 3 documentation, "Transactions".
ALWAYS_SERIALIZABLE = {"sqlite3", "pyignite_dbapi"}

# Drivers that leave `%%` as it is where a statement has no parameters.
NO_ESCAPES_WITHOUT_PARAMETERS = {"mysql.connector", "pg8000", "pg8000.dbapi"}


# The same for Apache Ignite 3, whose driver has no codes, by the beginnings of its servers' messages. Source: the classes of 3.1.0
# that raise them, HeapLockManager, TxManagerImpl (a commit found impossible before it was sent), PartitionReplicaListener and the
# SQL engine. All of these are raised before a transaction is committed. Not definite: all others, such as "Failed to
# process replica request", "Failed to commit the transaction" and "Transaction is already finished".
DEFINITE_IGNITE = [
    ("serialization", "Failed to acquire a lock due to"),
    ("serialization", "Failed to acquire an abandoned lock due to"),
    ("serialization", "Failed to acquire the intention table lock due to"),
    ("serialization", "Primary replica has expired, transaction will be rolled back"),
    ("other", "Commit failed because a table was already dropped"),
    ("other", "Commit failed because schema is not forward-compatible"),
    ("other", "Failed to parse query"),
    ("other", "Failed to validate query"),
    ("other", "PK unique constraint is violated"),
]

# The class of SQLSTATE for a constraint that was violated (SQL:2016, part 2, clause 24.1), for drivers that have no codes: a load
# that inserts a key of its own tells by it that the key was taken.
INTEGRITY = "23000"

# Drivers that hold Python's lock while they wait for the server: no other thread runs meanwhile. Each of their sessions has a
# process of its own.
HOLDS_THE_LOCK = {"pyignite_dbapi"}


def code_of(error):
    """The database's own code: a SQLSTATE as text, or a number; None where the driver has none."""
    for name in ("sqlstate", "pgcode"):
        state = getattr(error, name, None)
        if isinstance(state, str) and len(state) == 5:
            number = getattr(error, "errno", None)
            if number in NUMBERS_BEFORE_STATES or (state == "HY000" and isinstance(number, int)):
                return number
            return state
    first = error.args[0] if getattr(error, "args", None) else None
    if isinstance(first, dict):
        return first.get("C") or first.get(b"C")
    if isinstance(first, int) and not isinstance(error, OSError):
        return first
    # pyodbc's (its documentation, "Exceptions").
    if isinstance(first, str) and len(error.args) > 1 and len(first) == 5 and first.isalnum() and first.upper() == first:
        return first
    return None


def verdict(error):
    """The class of an error, its code, and whether it proves that nothing was committed."""
    code = code_of(error)
    if isinstance(code, int):
        if code in DEFINITE_NUMBERS:
            return DEFINITE_NUMBERS[code], str(code), True
        if code == ROLLBACK_DURING_COMMIT:
            return "serialization", str(code), False
        return ("connection" if code in CONNECTION_NUMBERS else "other"), str(code), False
    if isinstance(code, str):
        # YugabyteDB asks for a commit again and finds a transaction "expired" that was committed the first time.
        may_be_committed = code[:2] == "40" and "expired" in str(error)
        definite = code[:2] in DEFINITE_CLASSES and code not in INDEFINITE_STATES and not may_be_committed
        if code in SERIALIZATION_STATES:
            return "serialization", code, definite
        if code in READ_ONLY_STATES:
            return "read-only", code, definite
        if code in CONNECTION_STATES or code[:2] == "08":
            return "connection", code, False
        return "other", code, definite
    if isinstance(error, TimeoutError):
        return "timeout", None, False
    names = {kind.__name__ for kind in type(error).__mro__}
    if type(error).__module__.split(".")[0] == "pyignite_dbapi":
        return verdict_of_ignite(error)
    if names & DEFINITE_EXCEPTIONS:
        return "other", INTEGRITY if "IntegrityError" in names else None, True
    return "connection", None, False


def verdict_of_ignite(error):
    """The same for Apache Ignite. Its driver tells a broken connection by the exception's class, and connects again by itself, without
    the transaction: such a session has to end."""
    # A server's message has a Java class before it.
    said = str(error).split(": ", 1)[-1]
    for kind, beginning in DEFINITE_IGNITE:
        if said.startswith(beginning):
            return kind, INTEGRITY if "unique constraint" in beginning else None, True
    return "connection" if type(error).__name__ in ("OperationalError", "InterfaceError") else "other", None, False


def text_of(error):
    """What an error says, in one line."""
    first = error.args[0] if getattr(error, "args", None) else None
    said = first.get("M") if isinstance(first, dict) else None
    return " ".join(str(said or error or type(error).__name__).split()) or type(error).__name__


class Output:
    """Lines to the load; one at a time."""

    def __init__(self, file):
        self.file = file
        self.lock = threading.Lock()

    def say(self, message):
        self.pass_on(json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode() + b"\n")

    def pass_on(self, line):
        with self.lock:
            self.file.write(line)
            self.file.flush()


def typed(text):
    """An option as Python has it: numbers and truth as such, and a list in JSON."""
    if text.startswith("["):
        return json.loads(text)
    try:
        return int(text)
    except ValueError:
        return {"true": True, "false": False}.get(text.lower(), text)


def cell(value):
    """A value of a row as the protocol has it: null, a whole number of 64 bits, or text."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "\\x" + bytes(value).hex()
    return str(value)


def with_parameters(driver, pieces, values):
    """A statement and its parameters in the driver's own style."""
    style = driver.paramstyle
    if style in ("format", "pyformat"):
        escapes = values or driver.__name__ not in NO_ESCAPES_WITHOUT_PARAMETERS
        if escapes:
            pieces = [piece.replace("%", "%%") for piece in pieces]
    marks = {
        "qmark": lambda place: "?",
        "format": lambda place: "%s",
        "pyformat": lambda place: "%s",
        "numeric": lambda place: f":{place + 1}",
        "named": lambda place: f":p{place + 1}",
    }[style]
    text = pieces[0] + "".join(marks(place) + piece for place, piece in enumerate(pieces[1:]))
    if style == "named":
        return text, {f"p{place + 1}": value for place, value in enumerate(values)}
    return text, tuple(values)


class Doubtful(Exception):
    """A commit was acknowledged with a warning."""


class AfterCommit(Exception):
    """An error behind a commit that was acknowledged. It is committed, whatever that error's own code says."""

    sqlstate = "08000"


class Notices:
    """Warnings that come with an acknowledgement. PostgreSQL answers a commit whose wait for standbys is cut short with success
    and a warning ("canceling wait for synchronous replication"): it is on one disk and perhaps nowhere else."""

    def __init__(self, connection):
        self.own = []
        self.connection = connection
        listen = getattr(connection, "add_notice_handler", None)
        if callable(listen):
            listen(lambda notice: self.own.append(f"{notice.severity_nonlocalized}: {notice.message_primary}"))

    def forget(self):
        self.own.clear()
        kept = getattr(self.connection, "notices", None)
        if hasattr(kept, "clear"):
            kept.clear()

    def look(self, is_commit):
        kept = getattr(self.connection, "notices", None) or []
        for notice in [*self.own, *kept]:
            # Its severity may stand there in any language.
            text = str(notice)
            if is_commit or "synchronous replication" in text or "syncrep.c" in text:
                raise Doubtful(f"acknowledged with a warning: {' '.join(text.split())}")


class Session(threading.Thread):
    """One connection, and what is asked of it one after the other."""

    def __init__(self, number, driver, output):
        super().__init__(daemon=True, name=f"session {number}")
        self.driver, self.output = driver, output
        self.asked = queue.Queue()
        self.connection = None
        self.notices = None
        self.autocommits = False
        self.in_block = False
        # Whether the transaction that is open was begun by the driver, and not by statements.
        self.by_driver = False

    def run(self):
        while True:
            message = self.asked.get()
            if message is None:
                return self.end()
            try:
                if "open" in message:
                    self.open(message["open"])
                    self.output.say({"ask": message["ask"], "ok": {}})
                else:
                    self.steps(message["ask"], message["run"])
            except Doubtful as error:
                self.tell(message, "unknown", "other", None, str(error))
            except Exception as error:
                kind, code, definite = verdict(error)
                definite = definite or "open" in message
                self.tell(message, "failed" if definite else "unknown", kind, code, text_of(error))

    def tell(self, message, outcome, kind, code, text):
        self.output.say({"ask": message["ask"], outcome: {"class": kind, "code": code, "text": text}})

    def open(self, open_):
        options = {name: typed(value) for name, value in open_["options"].items()}
        if open_["url"]:
            arguments = [open_["url"]]
        else:
            arguments = []
            if not options:
                options = {name: open_[name] for name in ("host", "port", "user", "database")}
            if open_["password"] is not None:
                options.setdefault("password", open_["password"])
        self.connection = self.driver.connect(*arguments, **options)
        self.notices = Notices(self.connection)
        # A driver without such a switch begins transactions by itself.
        self.autocommits = self.switch(True)

    def switch(self, autocommit):
        """Has each statement commit by itself, or the driver begin transactions; whether the driver knows how."""
        switch = getattr(self.connection, "autocommit", None)
        if callable(switch):
            switch(autocommit)
        elif switch is not None:
            self.connection.autocommit = autocommit
        elif hasattr(self.connection, "isolation_level"):
            self.connection.isolation_level = None if autocommit else "DEFERRED"
        else:
            return False
        return True

    def steps(self, ask, run):
        results = []
        for step in run["steps"]:
            results.append(self.step(ask, step, run.get("page_rows")))
        self.output.say({"ask": ask, "ok": {"results": results}})

    def step(self, ask, step, page_rows):
        if "begin" in step:
            self.begin(step["begin"]["sql"], step["begin"]["isolation"])
            return {}
        if "rollback" in step:
            self.finish("ROLLBACK", self.connection.rollback)
            return {}
        self.notices.forget()
        if "commit" in step:
            self.finish("COMMIT", self.connection.commit)
            self.notices.look(True)
            return {}
        try:
            result = self.execute(step["sql"], step["parameters"], ask, page_rows)
        except Exception:
            if not self.in_block and not self.autocommits:
                # The driver began a transaction for this statement alone.
                self.connection.rollback()
            raise
        if not self.in_block:
            if not self.autocommits:
                self.connection.commit()
            self.notices.look(False)
        return result

    def begin(self, statements, isolation):
        self.by_driver = self.autocommits and not statements
        if self.by_driver:
            self.switch(False)
        elif self.autocommits:
            for sql in statements:
                self.execute([sql], [], None, None)
        if isolation and (self.by_driver or not self.autocommits):
            try:
                self.set_isolation(isolation)
            except Exception:
                self.finish("ROLLBACK", self.connection.rollback)
                raise
        self.in_block = True

    def set_isolation(self, isolation):
        """Has the transaction that the driver begins this level, or, in place of REPEATABLE READ, which not every database knows,
        the next stricter one. PEP 249 has no call for it; the statement is that of the SQL standard."""
        if self.driver.__name__ in ALWAYS_SERIALIZABLE:
            return
        try:
            self.execute([f"SET TRANSACTION ISOLATION LEVEL {isolation}"], [], None, None)
        except Exception:
            if isolation != "REPEATABLE READ":
                raise
            self.connection.rollback()
            self.execute(["SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"], [], None, None)

    def finish(self, word, method):
        was_open = self.in_block
        # A transaction whose commit was refused is open until it is rolled back.
        self.in_block = word == "COMMIT" and was_open
        if self.by_driver:
            method()
            self.in_block = False
            try:
                self.switch(True)
            except Exception as error:
                if word != "COMMIT":
                    raise
                raise AfterCommit(f"after the commit: {text_of(error)}") from error
            self.by_driver = False
        elif not self.autocommits:
            method()
        elif was_open:
            self.execute([word], [], None, None)
        self.in_block = False

    def execute(self, pieces, values, ask, page_rows):
        cursor = self.connection.cursor()
        try:
            cursor.execute(*with_parameters(self.driver, pieces, values))
            affected = max(cursor.rowcount, 0)
            if cursor.description is None:
                return {"rows": [], "affected": affected}
            if page_rows is None:
                rows = [[cell(value) for value in row] for row in cursor.fetchall()]
                return {"rows": rows, "affected": max(affected, len(rows))}
            return {"rows": self.pages(cursor, ask, page_rows), "affected": affected}
        finally:
            cursor.close()

    def pages(self, cursor, ask, page_rows):
        """Sends all pages but the last, which is returned."""
        while True:
            rows = [[cell(value) for value in row] for row in cursor.fetchmany(page_rows)]
            if len(rows) < page_rows:
                return rows
            self.output.say({"ask": ask, "more": {"rows": rows}})

    def end(self):
        try:
            if self.connection is not None:
                self.connection.close()
        except Exception:
            # It is given up either way.
            pass


class Lines:
    """What is asked of a session, from a pipe."""

    def __init__(self, pipe):
        self.file = os.fdopen(pipe, "rb")

    def get(self):
        line = self.file.readline()
        return json.loads(line) if line else None


def end_with(parent):
    """Has the kernel kill this process when its parent ends (prctl(2), PR_SET_PDEATHSIG)."""
    parent_death_signal = 1
    ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


class Apart:
    """A session in a process of its own. It ends when it is closed, whatever it is doing, and with this process. A driver may end it
    as well, by an error that nobody catches: what it was asked last is answered with that."""

    def __init__(self, number, driver, output):
        self.number, self.driver, self.output = number, driver, output
        self.asked = self
        self.ask = None
        self.is_over = False
        self.lock = threading.Lock()

    def start(self):
        asked_of, self.pipe = os.pipe()
        answers_from, answers = os.pipe()
        program = os.getpid()
        self.child = os.fork()
        if self.child == 0:
            # The program's own input is not its: whoever listens there is told by its end that the program has ended.
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            end_with(program)
            # Every other end of a pipe, of this session and of others, is somebody else's.
            os.closerange(3, min(asked_of, answers))
            os.closerange(min(asked_of, answers) + 1, max(asked_of, answers))
            os.closerange(max(asked_of, answers) + 1, 1 << 16)
            try:
                session = Session(self.number, self.driver, Output(os.fdopen(answers, "wb")))
                session.asked = Lines(asked_of)
                session.run()
            finally:
                os._exit(1)
        os.close(asked_of)
        os.close(answers)
        self.pipe = os.fdopen(self.pipe, "wb")
        threading.Thread(target=self.listen, args=(answers_from,), daemon=True).start()

    def put(self, message):
        with self.lock:
            if message is None:
                self.ask = None
                if not self.is_over:
                    os.kill(self.child, signal.SIGKILL)
                return
            self.ask = message["ask"]
            if self.is_over:
                return self.tell_end()
        try:
            # The child listens: it is asked one thing at a time.
            self.pipe.write(json.dumps(message).encode() + b"\n")
            self.pipe.flush()
        except OSError:
            # It has ended, which whoever listens to it tells.
            pass

    def tell_end(self):
        """Answers what it was asked last, if that is open. Under the lock."""
        if self.ask is not None:
            told = {"class": "connection", "code": None, "text": "the driver ended the process of this session"}
            self.output.say({"ask": self.ask, "unknown": told})
            self.ask = None

    def listen(self, pipe):
        with os.fdopen(pipe, "rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    with self.lock:
                        if b'"more":' not in line[:40]:
                            self.ask = None
                        self.output.pass_on(line)
        with self.lock:
            os.waitpid(self.child, 0)
            self.is_over = True
            self.tell_end()


def main():
    # What a driver prints must not get among the answers.
    output = Output(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)
    sessions = {}
    driver = None
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "hello" in message:
            hello = message["hello"]
            try:
                if hello["protocol"] != VERSION:
                    raise ImportError(f"this program speaks version {VERSION} of the protocol")
                if hello["folder"]:
                    sys.path.insert(0, hello["folder"])
                driver = importlib.import_module(hello["driver"])
                for needed in ("connect", "paramstyle"):
                    if not hasattr(driver, needed):
                        raise ImportError(f"the module {hello['driver']} has no `{needed}`: it is no DB-API driver")
            except Exception as error:
                told = {"class": "other", "text": f"{type(error).__name__}: {text_of(error)}"}
                output.say({"ask": message["ask"], "failed": told})
                continue
            output.say({"ask": message["ask"], "ok": {"protocol": VERSION}})
        elif "close" in message:
            session = sessions.pop(message["session"], None)
            if session is not None:
                session.asked.put(None)
        else:
            number = message["session"]
            if "open" in message:
                kind = Apart if driver.__name__ in HOLDS_THE_LOCK else Session
                sessions[number] = kind(number, driver, output)
                sessions[number].start()
            sessions[number].asked.put(message)
    # Connections end with the process, whatever they are doing.
    os._exit(0)


if __name__ == "__main__":
    main()
