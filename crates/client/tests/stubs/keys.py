"""A client program that keeps keys and values in its own memory, for the tests of the protocol of lines. With a folder it writes
down what it did, and the next process of it begins with that: a load has several, one after the other.

It is told what to do wrong by the name of a key: `stub/failed`, `stub/unknown`, `stub/dies`, `stub/silent`, `stub/others`,
`stub/elsewhere`, `stub/page`. By the driver's name it greets as one that speaks SQL (`sql`), that writes whole lists again
(`rewrites`), or says that only the node n2 takes writes (`n2-leads`).
"""

import json
import os
import sys

LIMITS = (-(2**63), 2**63 - 1)


class Refused(Exception):
    pass


def step(held, operation):
    """Carries one operation out on what is held; what it found."""
    do, key = operation["do"], operation.get("key")
    if do == "read":
        return {"value": held.get(key)}
    if do == "scan":
        after = operation["after"] or ""
        keys = sorted(key for key in held if key.startswith(operation["prefix"]) and key > after)
        return {"entries": [[key, held[key]] for key in keys[: operation["limit"]]]}
    if do == "write":
        held[key] = operation["value"]
    elif do == "insert":
        if key in held:
            raise Refused("something is there already")
        held[key] = operation["value"]
    elif do == "compare-and-set":
        if held.get(key) != operation["expected"]:
            raise Refused("another value is there")
        held[key] = operation["new"]
    elif do == "append":
        if not isinstance(held.get(key, []), list):
            raise Refused("no list is there")
        held[key] = held.get(key, []) + [operation["element"]]
    elif do == "add":
        if isinstance(held.get(key), (list, str)):
            raise Refused("no number is there")
        total = held.get(key, 0) + operation["amount"]
        floor = operation["floor"]
        if not LIMITS[0] <= total <= LIMITS[1] or (floor is not None and total < floor):
            raise Refused("the sum is out of bounds")
        held[key] = total
    else:
        raise ValueError(do)
    return "done"


def transact(held, operations):
    """What the operations answer, and what is held then."""
    after, found = dict(held), []
    for number, operation in enumerate(operations):
        try:
            found.append(step(after, operation))
        except Refused as error:
            return {"refused": {"step": number, "reason": str(error)}}, held
    return {"ok": {"found": found}}, after


def told_to(operations):
    for operation in operations:
        name = operation.get("key") or ""
        if name.startswith("stub/"):
            return name[len("stub/"):]
    return None


def answer(held, operations):
    told = told_to(operations)
    if told == "failed":
        return {"failed": {"class": "serialization", "code": "112", "text": "write conflict"}}, held
    if told == "elsewhere":
        return {"refused": {"step": len(operations), "reason": "of no operation"}}, held
    if told == "page":
        return {"more": {"rows": [[1]]}}, held
    said, after = transact(held, operations)
    if told == "unknown":
        return {"unknown": {"class": "timeout", "code": "64", "text": "waiting for replication timed out"}}, after
    if told == "dies":
        os._exit(9)
    if told == "silent":
        return None, after
    if told == "others":
        return {"ok": {"found": ["done"] * (len(operations) + 1)}}, after
    return said, after


def main():
    held, driver, done = {}, "", None
    for line in sys.stdin:
        message = json.loads(line)
        if "hello" in message:
            driver = message["hello"]["driver"]
            assert message["hello"]["speaks"] == "keys"
            if message["hello"]["folder"]:
                done = open(os.path.join(message["hello"]["folder"], "done"), "a+", buffering=1)
                done.seek(0)
                for before in done:
                    _, held = transact(held, json.loads(before))
            said = {"ok": {"protocol": 1, "speaks": "keys", "rewrites_lists": driver == "rewrites"}}
            if driver == "sql":
                said = {"ok": {"protocol": 1}}
        elif "open" in message:
            takes_writes = driver != "n2-leads" or message["open"]["node"] == "n2"
            said = {"ok": {"takes_writes": takes_writes}}
        elif "transact" in message:
            before, operations = held, message["transact"]["operations"]
            said, held = answer(held, operations)
            if done is not None and held is not before:
                done.write(json.dumps(operations) + "\n")
        else:
            continue
        if said is not None:
            print(json.dumps({"ask": message["ask"], **said}), flush=True)


main()
