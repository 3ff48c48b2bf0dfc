"""Shardings in notebooks: a box for each part of an array."""

from __future__ import annotations

from namoo._base import html
from namoo._base.html import escape
from namoo.devices.sharding.shardings import Sharding
from namoo.devices.sharding.visualize import picture


def sharding_html(sharding: Sharding) -> str:
    """Return a sharding as HTML; without a picture if it splits more than two dimensions.

    Example:
        >>> import namoo
        >>> one = namoo.sharding.SingleDeviceSharding(namoo.devices()[0])
        >>> "CPU 0" in sharding_html(one)
        True
    """
    count = max(len(getattr(sharding, "spec", ())), 1)
    parts, _ = sharding._tiling(count)
    text = f"<code>{escape(repr(sharding))}</code>"
    if sum(part > 1 for part in parts) <= 2:
        drawn = picture([4 * part for part in parts], sharding)
        text += f"<pre>{escape(drawn)}</pre>"
    return html.fragment(text)
