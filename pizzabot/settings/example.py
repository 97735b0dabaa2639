"""What does a new installation's `pizzabot.toml` look like? All of it is comments."""

from __future__ import annotations

_EXAMPLE = """\
# Settings of Pizza Bot. Every key has a default; remove the "# " of what you want to change.
# ${VARIABLE} and ${VARIABLE:-default} are filled in from the environment and from .env beside this file.
# Every key can also be given as PIZZABOT_SECTION__KEY. All keys are explained in docs/configuration.md.

# provider:model. Providers: openai anthropic google_genai bedrock_converse ollama openrouter demo
# model = "openai:gpt-5-mini"
# log_level = "info"                    # debug | info | warning | error
# log_format = "text"                   # text | json: what is written to the terminal

# How a provider is reached. Needs to stand here only when it is not the provider's own address.
# [models.openai]
# base_url = "https://api.openai.com/v1"
# api_key = "${OPENAI_API_KEY}"

# US dollars per million tokens, for models that the built-in table does not know.
# [prices."openai:gpt-5-mini"]
# input = 0.25
# output = 2.0
# cached_input = 0.025                  # as input without it, and so is cache_write

# Who may use this installation. Without anybody here there is one person, "Owner", in the web view.
# [[people]]
# name = "Ada"
# role = "owner"                        # owner | approver | member
# emails = ["ada@example.com"]
# slack = "U0ADA"
# timezone = "Europe/Amsterdam"
# notify = { action = ["slack", "email"], unread = ["slack"] }
# digest = "0 8 * * 1-5"
# quiet_hours = "20:00-07:00"
# day_usd = 5.0                         # of this person's runs

# [slack]
# enabled = true
# bot_token = "${SLACK_BOT_TOKEN}"
# app_token = "${SLACK_APP_TOKEN}"      # mode "socket"
# signing_secret = "${SLACK_SIGNING_SECRET:-}"  # mode "http"
# mode = "socket"                       # socket | http
# allow_bots = []                       # member ids of bots that may write to it

# [email]
# enabled = true
# address = "pizza@example.com"
# plus_addressing = true
# trusted_authserv_ids = ["mx.example.com"]
# [email.imap]
# host = "imap.example.com"
# port = 993
# security = "tls"                      # tls | starttls | none (this machine only)
# username = "pizza"
# password = "${IMAP_PASSWORD}"
# [email.listen]                        # instead: a door for your own mail server
# host = "127.0.0.1"
# port = 8025
# [email.smtp]
# host = "smtp.example.com"
# port = 587
# security = "starttls"
# username = "pizza"
# password = "${SMTP_PASSWORD}"
# [email.caps]
# automatic_per_thread = 30
# per_verified_person_hour = 600
# accepted_per_person_hour = 300
# per_unverified_address_day = 0
# questions_per_action = 3

# [web]
# host = "127.0.0.1"                    # another host needs allowed_origins
# port = 8642
# public_url = "http://127.0.0.1:8642"
# allowed_origins = []

# [approvals]
# default = "annotations"               # ask | annotations | allow
# reminder_after = "4h"                 # "3s" "15m" "4h" "7d" "never"
# expire_after = "never"
# on_expiry = "park"                    # park | reject
# escalate_after = "never"              # when others may decide, too
# escalate_to = ["Ada"]
# skills_may_loosen = false
# [approvals.words]
# approve = ["freigegeben"]             # besides the English words
# reject = ["abgelehnt"]
# [[approvals.rules]]
# tool = "mcp:ledger:submit_expense"    # a * may stand at the end
# ask = true
# decisions = ["approve", "edit", "reject"]
# approvers = ["Ada"]
# quorum = 1                            # how many have to approve the same arguments
# urgent = false                        # true: reminders pass quiet hours

# [limits]
# run_seconds = 1800
# model_calls = 40
# tool_calls = 100
# worker_tool_calls = 150
# run_usd = 2.0
# day_usd = 20.0
# run_tokens = 500000                   # none without it; holds also when a model's price is not known
# day_tokens = 5000000
# parallel_runs = 20

# [database]
# url = ""                              # "" is SQLite in this folder; or postgresql://user:password@host/name

# [retention]                           # "1d" or more, or "never"
# messages = "never"
# checkpoints = "never"
# attachments = "never"
# outbox = "90d"
# activity = "90d"
# audit = "never"

# [telemetry]
# metrics_token = "${METRICS_TOKEN}"    # reads GET /metrics and nothing else
# otlp_endpoint = "http://127.0.0.1:4318"  # where traces go; needs pizzabot[otel]

# [[triggers]]
# name = "Morning"
# kind = "cron"
# cron = "0 8 * * 1-5"
# timezone = "Europe/Amsterdam"
# prompt = "What is on today?"
"""


def default_toml() -> str:
    """The commented file that `pizzabot init` writes; loading it changes no default."""
    return _EXAMPLE
