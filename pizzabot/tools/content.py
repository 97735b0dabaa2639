"""How do tools and answers look when they come from the library, and how for the rest of the product?"""

from __future__ import annotations

import json
from typing import Any

from mcp_types import (
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)

from pizzabot.tools.references import full_name
from pizzabot.tools.values import ToolOutput, ToolSpec


def spec_of(server: str, tool: Tool) -> ToolSpec:
    """A listed tool. Without hints it is taken to change things, to destroy, and not to bear repetition."""
    hints = tool.annotations
    read_only = hints is not None and hints.read_only_hint is True
    return ToolSpec(
        full_name=full_name(server, tool.name),
        server=server,
        name=tool.name,
        description=tool.description or "",
        input_schema=tool.input_schema,
        read_only=read_only,
        destructive=not read_only and (hints is None or hints.destructive_hint is not False),
        idempotent=read_only or (hints is not None and hints.idempotent_hint is True),
    )


def output_of(result: CallToolResult) -> ToolOutput:
    """An answer, also an error answer. One that holds nothing but data is shown as JSON."""
    content = [_block(block) for block in result.content]
    structured = result.structured_content
    if not content and structured is not None:
        content = [_text(json.dumps(structured, ensure_ascii=False))]
    lines = (block["text"] if block["type"] == "text" else f"[{block['mime_type']}]" for block in content)
    return ToolOutput("\n".join(lines), content, structured if isinstance(structured, dict) else None)


def _block(block: ContentBlock) -> dict[str, Any]:
    if isinstance(block, TextContent):
        return _text(block.text)
    if isinstance(block, ImageContent):
        return {"type": "image", "base64": block.data, "mime_type": block.mime_type}
    if isinstance(block, ResourceLink):
        return _text(f"[{block.name}: {block.uri}]")
    if isinstance(block, EmbeddedResource):
        inner = block.resource
        if isinstance(inner, TextResourceContents):
            return _text(inner.text)
        return _text(f"[{inner.mime_type or 'data'}: {inner.uri}]")
    return _text(f"[{block.mime_type}]")


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
