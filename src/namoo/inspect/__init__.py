"""What each line of a program costs: `namoo.inspect(f, *args)`, `python -m namoo.inspect`.

`collect` measures a function and adds up what its kernels cost by line; `report` has the result,
which `text` and `page` print.
"""
