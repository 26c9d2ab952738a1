"""One story told through a Python client: LIBRARY MODE PLACE, PLACE being a URL or the JSON array of a command.

Calls `transfer`, lets an approval open while it blocks, answers the form, completes the task, and prints what it saw.
"""
import asyncio
import json
import sys

library, mode, place = sys.argv[1:]
is_url = place.startswith("http")
command = None if is_url else json.loads(place)
questions, progress = [], []
ANSWER = {"decision": "approve", "reason": "fine"}


def connect():
    if library == "fastmcp":
        from fastmcp import Client
        from fastmcp.client.elicitation import ElicitResult
        from fastmcp.client.transports import StdioTransport

        async def fill_in(message, _response_type, _params, _context):
            questions.append(message)
            return ElicitResult(action="accept", content=ANSWER)

        where = place if is_url else StdioTransport(command[0], command[1:])
        return Client(where, mode=mode, elicitation_handler=fill_in)
    from mcp import Client, StdioServerParameters
    from mcp_types import ElicitResult

    async def fill_in(_context, params):
        questions.append(params.message)
        return ElicitResult(action="accept", content=ANSWER)

    where = place if is_url else StdioServerParameters(command=command[0], args=command[1:])
    return Client(where, mode=mode, elicitation_callback=fill_in)


async def call(client, name, args, on_progress=None):
    if library == "fastmcp":
        answer = await client.call_tool(name, args, progress_handler=on_progress, raise_on_error=False)
    else:
        answer = await client.call_tool(name, args, progress_callback=on_progress)
    return answer.structured_content


async def until(is_so):
    async with asyncio.timeout(30):
        while not await is_so():
            await asyncio.sleep(0.02)


async def main():
    async with connect() as client:
        listed = await client.list_tools()
        tools = [tool.name for tool in getattr(listed, "tools", listed)]

        async def on_progress(value, _total, _message):
            progress.append(value)

        async def has_progress():
            return len(progress) > 0

        async def is_decided():
            return len((await call(client, "decisions", {}))["decisions"]) > 0

        transfer = asyncio.create_task(call(client, "transfer", {"to": "bob", "amount": 5}, on_progress))
        await until(has_progress)
        await call(client, "ask", {})
        await until(is_decided)
        decisions = (await call(client, "decisions", {}))["decisions"]
        await call(client, "release", {"result": {"receipt": "r-1"}})
        result = await transfer
        refused = await call(client, "transfer", {"to": "bob", "amount": 9007199254740993})
    said = {"tools": tools, "questions": questions, "progress": progress, "decisions": decisions}
    print(json.dumps({**said, "result": result, "refused": refused}))


asyncio.run(main())
