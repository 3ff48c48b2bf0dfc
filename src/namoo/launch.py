"""`python -m namoo.launch -n 4 script.py args…`: run one program in several processes."""

from namoo.devices.launch import (
    DEADLINE_CODE,
    LAST_LINES,
    Launcher,
    Lines,
    free_address,
    main,
    parser,
)

__all__ = [
    "DEADLINE_CODE",
    "LAST_LINES",
    "Launcher",
    "Lines",
    "free_address",
    "main",
    "parser",
]

if __name__ == "__main__":
    raise SystemExit(main())
