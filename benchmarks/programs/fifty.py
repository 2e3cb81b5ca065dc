"""Programs of fifty functions: a chain, in which each calls the next, and a fan, in which one calls all others."""


def step_01(value):
    return step_02(value + 1)


def step_02(value):
    return step_03(value * 2) - 2


def step_03(value):
    result = step_04(value)
    return result if result > 3 else -result


def step_04(value):
    return max(step_05(value), 4)


def step_05(value):
    return sum(step_06(value) for _ in range(5 % 3))


def step_06(value):
    return step_07(value + 6)


def step_07(value):
    return step_08(value * 7) - 7


def step_08(value):
    result = step_09(value)
    return result if result > 8 else -result


def step_09(value):
    return max(step_10(value), 9)


def step_10(value):
    return sum(step_11(value) for _ in range(10 % 3))


def step_11(value):
    return step_12(value + 11)


def step_12(value):
    return step_13(value * 12) - 12


def step_13(value):
    result = step_14(value)
    return result if result > 13 else -result


def step_14(value):
    return max(step_15(value), 14)


def step_15(value):
    return sum(step_16(value) for _ in range(15 % 3))


def step_16(value):
    return step_17(value + 16)


def step_17(value):
    return step_18(value * 17) - 17


def step_18(value):
    result = step_19(value)
    return result if result > 18 else -result


def step_19(value):
    return max(step_20(value), 19)


def step_20(value):
    return sum(step_21(value) for _ in range(20 % 3))


def step_21(value):
    return step_22(value + 21)


def step_22(value):
    return step_23(value * 22) - 22


def step_23(value):
    result = step_24(value)
    return result if result > 23 else -result


def step_24(value):
    return max(step_25(value), 24)


def step_25(value):
    return sum(step_26(value) for _ in range(25 % 3))


def step_26(value):
    return step_27(value + 26)


def step_27(value):
    return step_28(value * 27) - 27


def step_28(value):
    result = step_29(value)
    return result if result > 28 else -result


def step_29(value):
    return max(step_30(value), 29)


def step_30(value):
    return sum(step_31(value) for _ in range(30 % 3))


def step_31(value):
    return step_32(value + 31)


def step_32(value):
    return step_33(value * 32) - 32


def step_33(value):
    result = step_34(value)
    return result if result > 33 else -result


def step_34(value):
    return max(step_35(value), 34)


def step_35(value):
    return sum(step_36(value) for _ in range(35 % 3))


def step_36(value):
    return step_37(value + 36)


def step_37(value):
    return step_38(value * 37) - 37


def step_38(value):
    result = step_39(value)
    return result if result > 38 else -result


def step_39(value):
    return max(step_40(value), 39)


def step_40(value):
    return sum(step_41(value) for _ in range(40 % 3))


def step_41(value):
    return step_42(value + 41)


def step_42(value):
    return step_43(value * 42) - 42


def step_43(value):
    result = step_44(value)
    return result if result > 43 else -result


def step_44(value):
    return max(step_45(value), 44)


def step_45(value):
    return sum(step_46(value) for _ in range(45 % 3))


def step_46(value):
    return step_47(value + 46)


def step_47(value):
    return step_48(value * 47) - 47


def step_48(value):
    result = step_49(value)
    return result if result > 48 else -result


def step_49(value):
    return max(step_50(value), 49)


def step_50(value):
    return value + 1


def leaf_01(value):
    return value + 1


def leaf_02(value):
    return value * 2 % 7


def leaf_03(value):
    return (value, 3)


def leaf_04(value):
    return str(value) * 4


def leaf_05(value):
    return [value] * 5


def leaf_06(value):
    return value + 6


def leaf_07(value):
    return value * 7 % 7


def leaf_08(value):
    return (value, 8)


def leaf_09(value):
    return str(value) * 9


def leaf_10(value):
    return [value] * 10


def leaf_11(value):
    return value + 11


def leaf_12(value):
    return value * 12 % 7


def leaf_13(value):
    return (value, 13)


def leaf_14(value):
    return str(value) * 14


def leaf_15(value):
    return [value] * 15


def leaf_16(value):
    return value + 16


def leaf_17(value):
    return value * 17 % 7


def leaf_18(value):
    return (value, 18)


def leaf_19(value):
    return str(value) * 19


def leaf_20(value):
    return [value] * 20


def leaf_21(value):
    return value + 21


def leaf_22(value):
    return value * 22 % 7


def leaf_23(value):
    return (value, 23)


def leaf_24(value):
    return str(value) * 24


def leaf_25(value):
    return [value] * 25


def leaf_26(value):
    return value + 26


def leaf_27(value):
    return value * 27 % 7


def leaf_28(value):
    return (value, 28)


def leaf_29(value):
    return str(value) * 29


def leaf_30(value):
    return [value] * 30


def leaf_31(value):
    return value + 31


def leaf_32(value):
    return value * 32 % 7


def leaf_33(value):
    return (value, 33)


def leaf_34(value):
    return str(value) * 34


def leaf_35(value):
    return [value] * 35


def leaf_36(value):
    return value + 36


def leaf_37(value):
    return value * 37 % 7


def leaf_38(value):
    return (value, 38)


def leaf_39(value):
    return str(value) * 39


def leaf_40(value):
    return [value] * 40


def leaf_41(value):
    return value + 41


def leaf_42(value):
    return value * 42 % 7


def leaf_43(value):
    return (value, 43)


def leaf_44(value):
    return str(value) * 44


def leaf_45(value):
    return [value] * 45


def leaf_46(value):
    return value + 46


def leaf_47(value):
    return value * 47 % 7


def leaf_48(value):
    return (value, 48)


def leaf_49(value):
    return str(value) * 49


def leaf_50(value):
    return [value] * 50


def chain(value):
    return step_01(value)


def fan(value):
    return [
        leaf_01(value),
        leaf_02(value),
        leaf_03(value),
        leaf_04(value),
        leaf_05(value),
        leaf_06(value),
        leaf_07(value),
        leaf_08(value),
        leaf_09(value),
        leaf_10(value),
        leaf_11(value),
        leaf_12(value),
        leaf_13(value),
        leaf_14(value),
        leaf_15(value),
        leaf_16(value),
        leaf_17(value),
        leaf_18(value),
        leaf_19(value),
        leaf_20(value),
        leaf_21(value),
        leaf_22(value),
        leaf_23(value),
        leaf_24(value),
        leaf_25(value),
        leaf_26(value),
        leaf_27(value),
        leaf_28(value),
        leaf_29(value),
        leaf_30(value),
        leaf_31(value),
        leaf_32(value),
        leaf_33(value),
        leaf_34(value),
        leaf_35(value),
        leaf_36(value),
        leaf_37(value),
        leaf_38(value),
        leaf_39(value),
        leaf_40(value),
        leaf_41(value),
        leaf_42(value),
        leaf_43(value),
        leaf_44(value),
        leaf_45(value),
        leaf_46(value),
        leaf_47(value),
        leaf_48(value),
        leaf_49(value),
        leaf_50(value),
    ]


FUNCTIONS = {"chain of 50": chain, "fan of 50": fan}
