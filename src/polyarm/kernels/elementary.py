"""Logarithm and exponential of four numbers at a time, within one unit in the last place.

By the formulas of fdlibm (Sun Microsystems 1993), without a branch.  The C library takes as long for one number.
"""

import math

from polyarm.kernels._jit import inlined
from polyarm.kernels.lanes import Lanes, bits_of, float_of, multiply_add, where_less

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # their sum is log 2 to 85 bits
PER_LN2 = 1.44269504088896338700
ROOT_HALF = 0x3FE6A09E667F3BCD  # bits of 1 / sqrt(2), where mantissas begin
TO_ONE = 0x3FF0000000000000 - ROOT_HALF
MANTISSA, FRACTION, EXPONENT = 52, 0xFFFFFFFFFFFFF, 1023
TWO_52, TWO_52_BITS = 4503599627370496.0, 0x4330000000000000  # a small integer added to the bits is added to the number
ROUNDER = 6755399441055744.0  # 1.5 2^52: a number added to it is rounded, and its last bits are that integer
L1, L2, L3 = 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01
L4, L5, L6, L7 = 2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01
P1, P2, P3 = 1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05
P4, P5 = -1.65339022054652515390e-06, 4.13813679705723846039e-08


@inlined
def log(x: Lanes) -> Lanes:
    """Logarithms of positive numbers, no denormal ones, or of infinity.

    x = 2^k (1 + f) with 1 + f about one, s = f / (2 + f):  log(1 + f) = f - f^2/2 + s (f^2/2 + R),
    with R = L1 s^2 + L2 s^4 + ...
    """
    bits = bits_of(x) + TO_ONE
    k = float_of((bits >> MANTISSA) + TWO_52_BITS) - (TWO_52 + EXPONENT)
    f = float_of((bits & FRACTION) + ROOT_HALF) - 1.0
    s = f / (f + 2.0)
    z = s * s
    w = z * z
    odd = multiply_add(w, multiply_add(w, multiply_add(w, L7, L5), L3), L1)
    even = multiply_add(w, multiply_add(w, L6, L4), L2)
    h = f * f * 0.5
    y = k * LN2_HIGH - ((h - (s * (h + multiply_add(z, odd, w * even)) + k * LN2_LOW)) - f)
    return where_less(x, math.inf, y, x)


@inlined
def exp(x: Lanes) -> Lanes:
    """Exponentials of numbers between -700 and 700.

    x = k log 2 + r with |r| <= log(2) / 2:  exp(r) = 1 + r + r c / (2 - c),  c = r - P1 r^2 - P2 r^4 ...
    """
    shifted = x * PER_LN2 + ROUNDER
    k = shifted - ROUNDER
    high, low = x - k * LN2_HIGH, k * LN2_LOW
    r = high - low
    t = r * r
    P = multiply_add(t, multiply_add(t, multiply_add(t, multiply_add(t, P5, P4), P3), P2), P1)
    c = r - t * P
    y = 1.0 - ((low - (r * c) / (2.0 - c)) - high)
    return float_of(bits_of(y) + (bits_of(shifted) << MANTISSA))
