"""Asks the corpus as if it were a chat model, with OpenAI's own client: `python chat.py QUESTION`.

RAMIFY_URL names the server, RAMIFY_KEY an API key. Needs openai.
"""

import os
import sys

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("RAMIFY_URL", "http://127.0.0.1:8321") + "/v1",
    api_key=os.environ.get("RAMIFY_KEY", "none"),
)
question = {"role": "user", "content": " ".join(sys.argv[1:])}
for chunk in client.chat.completions.create(model="ramify", messages=[question], stream=True):
    print(chunk.choices[0].delta.content or "" if chunk.choices else "", end="", flush=True)
print()
