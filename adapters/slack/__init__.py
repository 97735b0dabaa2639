"""Slack as a home of the inbox: conversations, action cards, the Home tab, commands and files."""
