"""The audit's hash chain in a second language, from docs/ledger.md alone: no code is shared with src/ledger.

Reads from standard input a JSON array of entries of one task, in order; writes {"ok": …, "entries": …}.
"""

import hashlib
import json
import sys


def canonical(value):
    """RFC 8785 for what an audit holds: no fractions; keys in the order of their UTF-16 code units."""
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be"))
        return "{" + ",".join(canonical(key) + ":" + canonical(member) for key, member in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


HASHED = ["at", "data", "operationId", "seq", "taskId", "tenant", "type"]
entries = json.load(sys.stdin)
previous = "0" * 64
ok = True
for number, entry in enumerate(entries, start=1):
    text = canonical({name: entry[name] for name in HASHED})
    previous = hashlib.sha256((previous + "\n" + text).encode("utf-8")).hexdigest()
    ok = ok and previous == entry["hash"] and entry["seq"] == number
json.dump({"ok": ok, "entries": len(entries)}, sys.stdout)
