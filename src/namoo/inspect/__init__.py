"""What each line of a program costs: `namoo.inspect(f, *args)`, `python -m namoo.inspect`.

`collect` measures a function and adds up the cost of its kernels by line, `report` defines the
result, and `text` and `page` print it.
"""
