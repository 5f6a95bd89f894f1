"""An agent's session over MCP, with the SDK's client: `python mcp_session.py QUESTION`.

Starts `ramify mcp`; RAMIFY_URL names a server instead, RAMIFY_KEY its API key. Needs mcp.
"""

import asyncio
import os
import sys
from contextlib import asynccontextmanager

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def over_http(url, key):
    """The path of a running server, with a key where it wants one."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30, read=300)) as http:
        async with streamable_http_client(f"{url}/mcp", http_client=http) as streams:
            yield streams


async def main(question):
    """Ask, wait for the answer, and read the first source in its document."""
    url = os.environ.get("RAMIFY_URL")
    here = StdioServerParameters(command="ramify", args=["mcp"], env=dict(os.environ))
    async with Client(over_http(url, os.environ.get("RAMIFY_KEY")) if url else here) as ramify:
        print("tools:", ", ".join(tool.name for tool in (await ramify.list_tools()).tools), file=sys.stderr)
        answer = await ramify.call_tool("ask", {"question": question}, progress_callback=progress)
        while not answer.is_error and not answer.structured_content["ended"]:
            job = {"id": answer.structured_content["job_id"]}
            answer = await ramify.call_tool("result", job, progress_callback=progress)
        print(answer.content[0].text)
        for source in (answer.structured_content or {}).get("sources", [])[:1]:
            print("\n" + (await ramify.read_resource(source["uri"])).contents[0].text)


async def progress(done, total, said):
    """A step of the work."""
    print(f"{done:.0f} of {total:.0f}: {said}", file=sys.stderr)


asyncio.run(main(" ".join(sys.argv[1:])))
