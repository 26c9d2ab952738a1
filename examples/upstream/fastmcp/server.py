"""A printing press on FastMCP: what it prints is done by background tasks (`TasksExtension`, docket in memory).

PRESS_FOLDER holds what it works on: an edition is printed once its copy is there, `copy/<edition>.txt`, and `printed.jsonl` says what was
printed, one line each. A key prints once. Argument: the port on 127.0.0.1.
"""

import asyncio
import json
import os
import sys
from datetime import timedelta
from pathlib import Path

import mcp_types
from fastmcp import Context, FastMCP
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from pydantic import BaseModel

FOLDER = Path(os.environ["PRESS_FOLDER"])
PRINTED = FOLDER / "printed.jsonl"
AS_TASK = TaskConfig(mode="required", poll_interval=timedelta(milliseconds=500))

mcp = FastMCP("Press", version="1.0.0")
mcp.add_extension(TasksExtension())


class Printed(BaseModel):
    edition: str
    text: str
    run: int


class Found(BaseModel):
    found: bool
    edition: str = ""
    text: str = ""
    run: int = 0


def lines() -> list[dict]:
    return [json.loads(line) for line in PRINTED.read_text().splitlines()] if PRINTED.exists() else []


def standing(key: str) -> dict | None:
    last = next((line for line in reversed(lines()) if line["key"] == key), None)
    return last if last and not last.get("withdrawn") else None


def append(line: dict) -> None:
    with PRINTED.open("a") as file:
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())


async def printed(edition: str, key: str, note: str) -> Printed:
    copy = FOLDER / "copy" / f"{edition}.txt"
    while not copy.exists():
        await asyncio.sleep(0.05)
    # Nothing is awaited from here on, so two tasks under one key print once.
    if (line := standing(key)) is None:
        line = {"key": key, "edition": edition, "text": copy.read_text() + note, "run": len(lines()) + 1}
        append(line)
    return Printed(edition=line["edition"], text=line["text"], run=line["run"])


@mcp.tool(task=AS_TASK)
async def print_edition(edition: str, idempotency_key: str) -> Printed:
    """Prints an edition as soon as its copy is there. The same key prints once."""
    return await printed(edition, idempotency_key, "")


@mcp.tool(task=AS_TASK)
async def print_with_imprint(edition: str, idempotency_key: str, ctx: Context) -> Printed | mcp_types.InputRequiredResult:
    """Asks who answers for the edition, then prints it with that name."""
    answer = (ctx.input_responses or {}).get("imprint")
    if answer is None:
        return mcp_types.InputRequiredResult(
            input_requests={
                "imprint": mcp_types.ElicitRequest(
                    params=mcp_types.ElicitRequestFormParams(
                        message=f"Who answers for {edition}?",
                        requested_schema={
                            "type": "object",
                            "properties": {"name": {"type": "string"}},
                            "required": ["name"],
                        },
                    )
                )
            }
        )
    name = (answer.content or {}).get("name", "nobody") if answer.action == "accept" else "nobody"
    return await printed(edition, idempotency_key, f"V.i.S.d.P. {name}\n")


@mcp.tool(annotations={"readOnlyHint": True})
async def find_edition(idempotency_key: str) -> Found:
    """What was printed under a key and not withdrawn."""
    line = standing(idempotency_key)
    return Found(found=False) if line is None else Found(found=True, edition=line["edition"], text=line["text"], run=line["run"])


@mcp.tool
async def withdraw_edition(idempotency_key: str) -> Found:
    """Withdraws what was printed under a key; nothing where nothing was. The copies that were sold are not coming back."""
    if (line := standing(idempotency_key)) is not None:
        append({**line, "withdrawn": True})
    return Found(found=False)


if __name__ == "__main__":
    (FOLDER / "copy").mkdir(parents=True, exist_ok=True)
    mcp.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
