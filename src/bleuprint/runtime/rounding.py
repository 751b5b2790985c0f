"""Rounds whole numbers up, as batches, tensors and intervals need it."""


def divide_rounding_up(dividend: int, divisor: int) -> int:
    """Return a quotient, rounded up to the next whole number: 7 by 2 is 4.

    Args:
        dividend: The number that is divided.
        divisor: The positive number by which it is divided.
    """
    # `//` rounds down. Of the negative number that is rounding up: -7 // 2 is -4.
    return -(-dividend // divisor)


def round_up(number: int, factor: int) -> int:
    """Return the next multiple of a factor: 60 becomes 64 if the factor is 16.

    Args:
        number: The number; a multiple of the factor stays.
        factor: The positive number whose multiples are allowed.
    """
    return divide_rounding_up(number, factor) * factor
