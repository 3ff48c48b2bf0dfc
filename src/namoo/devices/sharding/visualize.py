"""Draw a sharding: a box for each part of the array, with the devices that hold it."""

from __future__ import annotations

import colorsys
import textwrap
from collections.abc import Callable, Sequence

from namoo.devices.sharding.shardings import Sharding

ColorMap = Callable[[float], Sequence[float]]

# The height of a picture in lines, and the aspect ratio of a letter.
_HEIGHT = 10
_LETTER = 2.5


def _shown_dims(shape: Sequence[int], parts: Sequence[int]) -> tuple[int | None, int | None]:
    """Return the dimensions drawn down and across; of more than two, those that are split."""
    if len(shape) <= 2:
        return (0, 1) if len(shape) == 2 else (None, 0 if len(shape) else None)
    split = [dim for dim, count in enumerate(parts) if count > 1]
    if len(split) > 2:
        raise ValueError(
            f"A picture has two dimensions, but this sharding splits {len(split)} of the shape "
            f"{tuple(shape)}: dimensions {split}. Print sharding.devices_indices_map(shape)."
        )
    whole = [dim for dim in range(len(shape)) if dim not in split]
    down, across = sorted([*split, *whole][:2])
    return down, across


def _bright(red: float, green: float, blue: float) -> bool:
    return 0.299 * red + 0.587 * green + 0.114 * blue > 0.5


def _palette(at: float) -> Sequence[float]:
    # Adjacent boxes differ in hue and in brightness.
    return colorsys.hsv_to_rgb(at, 0.55, 0.9 if int(at * 16) % 2 else 0.6)


def _painted(text: str, color: Sequence[float]) -> str:
    red, green, blue = (round(255 * max(0.0, min(1.0, part))) for part in color[:3])
    letters = "30" if _bright(*color[:3]) else "97"
    return f"\x1b[{letters};48;2;{red};{green};{blue}m{text}\x1b[0m"


def picture(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    color_map: ColorMap | None = None,
    use_color: bool = False,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
) -> str:
    """Draw a sharding as text; see `debug.visualize_sharding`.

    Example:
        >>> import namoo
        >>> from namoo.sharding import SingleDeviceSharding
        >>> print(picture((4,), SingleDeviceSharding(namoo.devices()[0])))
        ┌───────┐
        │ CPU 0 │
        └───────┘
    """
    parts, places = sharding._tiling(len(shape))
    sharding.shard_shape(shape)
    down, across = _shown_dims(shape, parts)
    rows, columns = (1 if dim is None else parts[dim] for dim in (down, across))
    owners: dict[tuple[int, int], list[int]] = {}
    for device, place in zip(sharding._device_assignment, places.tolist(), strict=True):
        cell = [0 if dim is None else place[dim] for dim in (down, across)]
        owners.setdefault((cell[0], cell[1]), []).append(device.id)
    platform = sharding._device_assignment[0].platform.upper()

    full_height = int(_HEIGHT * scale)
    if down is None or across is None:
        aspect = 1 / shape[0] if shape and shape[0] else 1.0
    else:
        aspect = shape[across] / shape[down] if shape[down] else 1.0
    height = 1 if down is None else max(full_height // rows - 1, 1)
    labels = {cell: f"{platform} {','.join(map(str, sorted(ids)))}" for cell, ids in owners.items()}
    wanted = min(max(int(int(full_height * aspect) * _LETTER / columns), min_width), max_width) - 2
    wanted = max(wanted, max(map(len, labels.values())))
    # The lines between the cells take space, too.
    width = max(min(wanted, (max_width - 1) // columns - 1), len(platform) + 4)
    lines = {
        cell: textwrap.wrap(label.replace(",", ", "), width) if len(label) > width else [label]
        for cell, label in labels.items()
    }
    height = max(height, *(len(each) for each in lines.values()))
    colors = color_map or _palette

    def row(i: int) -> list[str]:
        cells = []
        for j in range(columns):
            text = lines[i, j]
            above = (height - len(text)) // 2
            column = [""] * above + text + [""] * (height - len(text) - above)
            filled = [" " * ((width - len(line)) // 2) + line for line in column]
            filled = [line.ljust(width) for line in filled]
            if use_color:
                at = (i * columns + j) / (rows * columns)
                filled = [_painted(line, colors(at)) for line in filled]
            cells.append(filled)
        return [f"│{'│'.join(line)}│" for line in zip(*cells, strict=True)]

    bars = ["─" * width] * columns
    out = [f"┌{'┬'.join(bars)}┐"]
    for i in range(rows):
        out += [f"├{'┼'.join(bars)}┤"] if i else []
        out += row(i)
    return "\n".join([*out, f"└{'┴'.join(bars)}┘"])
