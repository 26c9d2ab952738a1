"""The fingerprint of S1.4 in a second language, from the specification alone: no code is shared with src/contract.

Reads from standard input a JSON array of {"tenant", "action", "json"} where "json" is JSON text; writes an array of
{"canonical", "sha256"}. `python3 test/vectors/fingerprint.py < inputs.json`
"""

import hashlib
import json
import struct
import sys
from decimal import Decimal


def number(value):
    """ECMAScript's Number.prototype.toString, which RFC 8785 prescribes."""
    if isinstance(value, int):
        return str(value)
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    digits = Decimal(repr(value))
    exponent = digits.adjusted()
    if -6 <= exponent < 21:
        return format(digits, "f")
    sign, figures, _ = digits.as_tuple()
    text = "".join(map(str, figures)).rstrip("0")
    mantissa = text[0] + ("." + text[1:] if len(text) > 1 else "")
    return ("-" if sign else "") + f"{mantissa}e{exponent:+d}"


def canonical(value):
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be"))
        return "{" + ",".join(canonical(key) + ":" + canonical(member) for key, member in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(value)
    return json.dumps(value, ensure_ascii=False)


def prefixed(*parts):
    encoded = [part.encode("utf-8") for part in parts]
    return b"".join(struct.pack(">I", len(part)) + part for part in encoded)


answers = []
for case in json.load(sys.stdin):
    text = canonical(json.loads(case["json"]))
    digest = hashlib.sha256(prefixed(case["tenant"], case["action"], text)).hexdigest()
    answers.append({"canonical": text, "sha256": digest})
json.dump(answers, sys.stdout)
