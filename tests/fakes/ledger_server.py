"""A stdio MCP server, standard library only, whose side effects can be counted.

Every call is appended to the file $LEDGER as one JSON line when it starts and one when it ends. Calls run
side by side, each in a thread.

LEDGER_DELAY        seconds that submit_expense takes
LEDGER_START_DELAY  seconds before the server answers at all
LEDGER_STDERR       text that is written to stderr at the start
LEDGER_EXTRA_TOOLS  a JSON list of more entries for tools/list, taken as they are
LEDGER_LEARNING     "1": a tool learn(name) adds a tool and announces it
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import time
from typing import Any

LEDGER = os.environ.get("LEDGER", "ledger.jsonl")

Json = dict[str, Any]


def tool(name: str, description: str, properties: Json, required: list[str], **annotations: bool) -> Json:
    schema = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": description, "inputSchema": schema, "annotations": annotations}


READ_ONLY = {"readOnlyHint": True}
MONEY = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}

TOOLS: list[Json] = [
    tool(
        "submit_expense",
        "File an expense. Money leaves the account.",
        {
            "amount": {"type": "number", "description": "amount to pay", "minimum": 0},
            "currency": {"type": "string", "enum": ["EUR", "USD", "JPY"], "default": "EUR"},
            "note": {"type": "string", "description": "what it was for"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "urgent": {"type": "boolean", "default": False},
        },
        ["amount", "note"],
        **MONEY,
    ),
    tool(
        "pay_invoice",
        "Pay an invoice.",
        {
            "vendor": {"type": "string"},
            "amount": {"type": "integer", "minimum": 0},
            "currency": {"type": "string"},
            "note": {"type": "string"},
        },
        ["vendor", "amount", "currency"],
        **MONEY,
    ),
    tool("lookup", "Look a word up.", {"query": {"type": "string"}}, ["query"], **READ_ONLY),
    tool("slow", "Take some seconds.", {"seconds": {"type": "number"}}, ["seconds"], **READ_ONLY),
    tool("crash", "Kill this server.", {}, [], **READ_ONLY),
    tool("fail", "Return an error.", {"message": {"type": "string"}}, [], **READ_ONLY),
    tool(
        "send_email",
        "Send an email.",
        {"to": {"type": "string"}, "subject": {"type": "string"}, "body": {"type": "string"}},
        ["to", "subject", "body"],
        **MONEY,
    ),
    tool(
        "scale_service",
        "Change the number of replicas.",
        {"service": {"type": "string"}, "replicas": {"type": "integer"}},
        ["service", "replicas"],
    ),
    tool("pay_and_die", "Pay, then die before saying so.", {"note": {"type": "string"}}, ["note"], **MONEY),
]

writing = threading.Lock()
cancelled: dict[Any, threading.Event] = {}


def note(**row: object) -> None:
    line = json.dumps({"t": time.time(), "pid": os.getpid(), **row}) + "\n"
    with writing, open(LEDGER, "a", encoding="utf-8") as ledger:
        ledger.write(line)
        ledger.flush()
        os.fsync(ledger.fileno())


def send(**message: object) -> None:
    line = json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    with writing:
        sys.stdout.write(line)
        sys.stdout.flush()


def text(words: str, *, is_error: bool = False) -> Json:
    return {"content": [{"type": "text", "text": words}], "isError": is_error}


def call(name: str, args: Json, stop: threading.Event) -> Json:
    if name == "submit_expense":
        time.sleep(float(os.environ.get("LEDGER_DELAY", "0")))
        return text(f"filed {args.get('amount')} {args.get('currency', 'EUR')} for {args.get('note')}")
    if name in ("pay_invoice", "send_email", "scale_service"):
        return text(f"{name} done: {json.dumps(args, ensure_ascii=False, sort_keys=True)}")
    if name == "lookup":
        return text(f"{args['query']} means {args['query'][::-1]}")
    if name == "slow":
        stop.wait(float(args["seconds"]))
        return text(f"waited {args['seconds']}")
    if name in ("crash", "pay_and_die"):
        os._exit(3)
    if name == "fail":
        return text(args.get("message", "it failed"), is_error=True)
    if name == "learn":
        TOOLS.append(tool(args["name"], "Learned.", {}, []))
        send(method="notifications/tools/list_changed")
        return text(f"learned {args['name']}")
    return text("unknown tool", is_error=True)


def answer(request: Any, name: str, args: Json) -> None:
    note(event="start", tool=name, args=args)
    result = call(name, args, cancelled[request])
    if not cancelled[request].is_set():
        note(event="end", tool=name, args=args)
        send(id=request, result=result)


def handle(message: Json) -> None:
    method, params, request = message.get("method"), message.get("params") or {}, message.get("id")
    if method == "notifications/cancelled":
        note(event="cancelled", request=params.get("requestId"))
        if (stop := cancelled.get(params.get("requestId"))) is not None:
            stop.set()
    elif request is None:
        return
    elif method == "initialize":
        send(
            id=request,
            result={
                "protocolVersion": params.get("protocolVersion", "2025-06-18"),
                "capabilities": {"tools": {"listChanged": "LEDGER_LEARNING" in os.environ}},
                "serverInfo": {"name": "ledger", "version": "1.0"},
            },
        )
    elif method == "tools/list":
        extra = json.loads(os.environ.get("LEDGER_EXTRA_TOOLS", "[]"))
        send(id=request, result={"tools": TOOLS + extra})
    elif method == "tools/call":
        cancelled[request] = threading.Event()
        work = (request, params["name"], params.get("arguments") or {})
        threading.Thread(target=answer, args=work, daemon=True).start()
    elif method == "ping":
        send(id=request, result={})
    else:
        send(id=request, error={"code": -32601, "message": "no such method"})


def main() -> None:
    if words := os.environ.get("LEDGER_STDERR"):
        sys.stderr.write(words + "\n")
    if os.environ.get("LEDGER_LEARNING"):
        TOOLS.append(tool("learn", "Learn a tool.", {"name": {"type": "string"}}, ["name"]))
    deserted = select.poll()
    deserted.register(sys.stdin, select.POLLHUP)
    deserted.poll(1000 * float(os.environ.get("LEDGER_START_DELAY", "0")))
    for line in sys.stdin:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        handle(message)


if __name__ == "__main__":
    main()
