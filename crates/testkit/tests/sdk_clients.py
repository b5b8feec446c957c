"""The official SDKs as clients of the scripted model server, streamed. Prints one line a wire.

Every event is validated by the SDK's own types: the SDKs themselves let through whatever comes.
"""

import json
import sys

import anthropic
import openai
from anthropic.types import RawMessageStreamEvent
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

BASE = sys.argv[1]
KEY = "sk-none"


def tools(form):
    def tool(name, argument):
        schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
        return form(name, schema)

    return [tool("bash", "command"), tool("read", "path")]


def report(wire, text, calls, thoughts, usage, then):
    calls = [[name, json.loads(arguments)] for name, arguments in calls]
    print(json.dumps({"wire": wire, "text": text, "calls": calls, "thoughts": thoughts, "usage": usage, "then": then}))


def chat():
    client = openai.OpenAI(base_url=BASE + "/v1", api_key=KEY)
    messages = [{"role": "user", "content": "look"}]

    def ask():
        stream = client.chat.completions.create(
            model="m",
            messages=messages,
            tools=tools(lambda name, schema: {"type": "function", "function": {"name": name, "parameters": schema}}),
            stream=True,
            stream_options={"include_usage": True},
        )
        text, calls, thoughts, usage = "", {}, "", None
        for chunk in stream:
            ChatCompletionChunk.model_validate(chunk.to_dict())
            if chunk.usage:
                details = chunk.usage.prompt_tokens_details
                usage = [chunk.usage.prompt_tokens, chunk.usage.completion_tokens, details.cached_tokens]
            for choice in chunk.choices:
                text += choice.delta.content or ""
                thoughts += getattr(choice.delta, "reasoning_content", None) or ""
                for call in choice.delta.tool_calls or []:
                    known = calls.setdefault(call.index, {"id": call.id, "name": "", "arguments": ""})
                    known["name"] += call.function.name or ""
                    known["arguments"] += call.function.arguments or ""
        return text, list(calls.values()), thoughts, usage

    text, calls, thoughts, usage = ask()
    sent = [
        {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}} for c in calls
    ]
    messages.append({"role": "assistant", "content": text, "tool_calls": sent, "reasoning_content": thoughts})
    messages.extend({"role": "tool", "tool_call_id": c["id"], "content": "ok"} for c in calls)
    report("chat", text, [(c["name"], c["arguments"]) for c in calls], thoughts, usage, ask()[0])


def responses():
    client = openai.OpenAI(base_url=BASE + "/v1", api_key=KEY)
    items = [{"role": "user", "content": "look"}]
    event_type = TypeAdapter(ResponseStreamEvent)

    def ask():
        stream = client.responses.create(
            model="m",
            input=items,
            tools=tools(lambda name, schema: {"type": "function", "name": name, "parameters": schema, "strict": False}),
            store=False,
            include=["reasoning.encrypted_content"],
            stream=True,
        )
        numbers, final = [], None
        for event in stream:
            event_type.validate_python(event.to_dict())
            numbers.append(event.sequence_number)
            if event.type == "response.completed":
                final = event.response
        assert numbers == list(range(len(numbers))), numbers
        return final

    first = ask()
    thoughts = "".join(part.text for item in first.output if item.type == "reasoning" for part in item.summary)
    assert all(item.encrypted_content for item in first.output if item.type == "reasoning")
    calls = [item for item in first.output if item.type == "function_call"]
    items.extend(item.to_dict() for item in first.output)
    items.extend({"type": "function_call_output", "call_id": call.call_id, "output": "ok"} for call in calls)
    usage = [first.usage.input_tokens, first.usage.output_tokens, first.usage.input_tokens_details.cached_tokens]
    called = [(call.name, call.arguments) for call in calls]
    report("responses", first.output_text, called, thoughts, usage, ask().output_text)


def messages():
    client = anthropic.Anthropic(base_url=BASE, api_key=KEY)
    said = [{"role": "user", "content": "look"}]
    event_type = TypeAdapter(RawMessageStreamEvent)

    def ask():
        shape = tools(lambda name, schema: {"name": name, "input_schema": schema})
        # Once as raw events, validated one by one; once put together by the SDK.
        raw = client.messages.create(
            model="m", max_tokens=9000, messages=said, tools=shape, stream=True,
            thinking={"type": "enabled", "budget_tokens": 2000},
        )
        with raw as events:
            for event in events:
                event_type.validate_python(event.to_dict())
        with client.messages.stream(
            model="m", max_tokens=9000, messages=said, tools=shape,
            thinking={"type": "enabled", "budget_tokens": 2000},
        ) as stream:
            return stream.get_final_message()

    first = ask()
    text = "".join(block.text for block in first.content if block.type == "text")
    thoughts = "".join(block.thinking for block in first.content if block.type == "thinking")
    calls = [block for block in first.content if block.type == "tool_use"]
    said.append({"role": "assistant", "content": [block.to_dict() for block in first.content]})
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "ok"} for call in calls]
    said.append({"role": "user", "content": results})
    cached = first.usage.cache_read_input_tokens
    usage = [first.usage.input_tokens + cached, first.usage.output_tokens, cached]
    called = [(call.name, json.dumps(call.input)) for call in calls]
    report("anthropic", text, called, thoughts, usage, ask().content[-1].text)


for wire in (chat, responses, messages):
    wire()
