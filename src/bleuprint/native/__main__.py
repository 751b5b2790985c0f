"""Say whether the C++ functions were built: `python -m bleuprint.native`, the last step of set-up.

Neither pip nor uv shows that a compiler is missing or fails, since the C++ functions are optional.
"""

from bleuprint.native import unavailable_reason


def main() -> None:
    """Print why there are no C++ functions; print nothing if there are."""
    reason = unavailable_reason()
    if reason:
        print("note:", reason)


if __name__ == "__main__":
    main()
