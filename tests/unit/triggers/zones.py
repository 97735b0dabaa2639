"""Time zones whose clocks change in every way that clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

HOUR = timedelta(hours=1)

# The first of two years, and how often the clocks change in them.
ZONES = {
    "Europe/Amsterdam": (2025, 4),
    "America/New_York": (2025, 4),
    "Australia/Sydney": (2025, 4),
    "Australia/Lord_Howe": (2025, 4),  # by half an hour
    "Europe/Dublin": (2025, 4),
    "America/Havana": (2025, 4),  # at midnight
    "America/St_Johns": (2009, 4),  # at one minute past midnight then
    "Asia/Kolkata": (2025, 0),
    "Pacific/Apia": (2011, 5),  # without a 30 December 2011
    "Pacific/Kwajalein": (1993, 1),  # without a 21 August 1993
}


def changes(zone: str) -> list[datetime]:
    """When the clocks of the zone change in the two years that are looked at."""
    first_year, expected = ZONES[zone]
    local = ZoneInfo(zone)
    moment, end = datetime(first_year, 1, 1, tzinfo=UTC), datetime(first_year + 2, 1, 1, tzinfo=UTC)
    found = []
    while moment < end:
        if moment.astimezone(local).utcoffset() != (moment + HOUR).astimezone(local).utcoffset():
            found.append(moment + HOUR)
        moment += HOUR
    assert len(found) == expected, found
    return found
