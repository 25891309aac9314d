//! Foretold truths by hand: that they are as few as the facts allow.

use super::*;

fn of(predicate: &Predicate, known: Known) -> Truths {
    predicate.truths(&Told(HashMap::from([(1, known)])))
}

fn against(kind: &PrimitiveType, comparison: Comparison, datum: Datum) -> Predicate {
    Predicate::Compare(column(1, kind), comparison, datum)
}

fn range(lower: Datum, upper: Datum) -> Known {
    Known::anything().between(Some(Bound::loose(lower)), Some(Bound::loose(upper)))
}

fn filled(known: Known) -> Known {
    Known {
        nulls: false,
        ..known
    }
}

#[test]
fn bounds_decide_comparisons() {
    let int = PrimitiveType::Int;
    let ten_to_twenty = filled(range(Datum::int(10), Datum::int(20)));
    for (comparison, value, expected) in [
        (Comparison::Equal, 9, Truths::FALSE),
        (Comparison::Equal, 10, Truths::TRUE | Truths::FALSE),
        (Comparison::NotEqual, 21, Truths::TRUE),
        (Comparison::Less, 10, Truths::FALSE),
        (Comparison::Less, 21, Truths::TRUE),
        (Comparison::LessOrEqual, 20, Truths::TRUE),
        (Comparison::Greater, 20, Truths::FALSE),
        (Comparison::GreaterOrEqual, 10, Truths::TRUE),
        (Comparison::GreaterOrEqual, 11, Truths::TRUE | Truths::FALSE),
    ] {
        let condition = against(&int, comparison, Datum::int(value));
        assert_eq!(
            of(&condition, ten_to_twenty.clone()),
            expected,
            "{condition}"
        );
    }
}

#[test]
fn not_and_is_unknown_see_null() {
    let condition = against(&PrimitiveType::Int, Comparison::Less, Datum::int(5));
    let nullable = range(Datum::int(10), Datum::int(20));
    assert_eq!(
        of(&condition, nullable.clone()),
        Truths::FALSE | Truths::NULL
    );
    let not = condition.clone().negate();
    assert_eq!(of(&not, nullable.clone()), Truths::TRUE | Truths::NULL);
    assert!(!of(&not, nullable.clone()).all_match());
    let unknown = Predicate::IsUnknown(Box::new(condition.clone()));
    assert_eq!(of(&unknown, nullable.clone()), Truths::TRUE | Truths::FALSE);
    assert_eq!(of(&unknown, filled(nullable.clone())), Truths::FALSE);
    let never = Predicate::IsTrue(Box::new(condition));
    assert_eq!(of(&never, nullable), Truths::FALSE);
}

#[test]
fn bounds_say_nothing_of_nan() {
    let double = PrimitiveType::Double;
    let below_one = filled(range(Datum::double(0.0), Datum::double(1.0)));
    let great = against(&double, Comparison::Greater, Datum::double(5.0));
    let small = against(&double, Comparison::Less, Datum::double(5.0));
    assert!(of(&great, below_one.clone()).may_match());
    assert!(!of(&small, below_one.clone()).all_match());
    let without = Known {
        nans: false,
        ..below_one
    };
    assert!(!of(&great, without.clone()).may_match());
    assert!(of(&small, without.clone()).all_match());
    let nan = against(&double, Comparison::Equal, Datum::double(-f64::NAN));
    assert_eq!(of(&nan, without), Truths::FALSE);
    assert_eq!(
        of(&nan, Known::value(Datum::double(f64::NAN))),
        Truths::TRUE
    );
}

#[test]
fn both_zeros_are_one_bound() {
    let double = PrimitiveType::Double;
    let positive = filled(range(Datum::double(0.0), Datum::double(1.0)));
    let zero = against(&double, Comparison::Equal, Datum::double(-0.0));
    assert!(of(&zero, positive.clone()).may_match());
    let negative = against(&double, Comparison::LessOrEqual, Datum::double(-0.0));
    assert!(of(&negative, positive).may_match());
    let written_down = range(Datum::double(0.0), Datum::double(-0.0));
    assert!(written_down.lower.is_some());
}

#[test]
fn bounds_that_are_nan_or_inverted_say_nothing() {
    let nan = range(Datum::float(f32::NAN), Datum::float(1.0));
    assert_eq!(nan, Known::anything());
    let inverted = range(Datum::int(5), Datum::int(4));
    assert_eq!(inverted, Known::anything());
    let mixed = range(Datum::int(5), Datum::long(6));
    assert_eq!(mixed, Known::anything());
}

#[test]
fn sources_that_contradict_each_other_say_nothing() {
    let three = Known::value(Datum::int(3));
    let four = Known::value(Datum::int(4));
    assert_eq!(three.clone().and(four), Known::anything());
    assert_eq!(three.clone().and(Known::null()), Known::anything());
    assert_eq!(three.clone().and(Known::anything()), three);
}

#[test]
fn a_list_matches_wholly_only_for_one_value() {
    let text = column(1, &PrimitiveType::String);
    let list = Predicate::In(text.clone(), vec![Datum::string("a"), Datum::string("b")]);
    assert_eq!(of(&list, Known::value(Datum::string("b"))), Truths::TRUE);
    assert_eq!(of(&list, Known::value(Datum::string("c"))), Truths::FALSE);
    let both = filled(range(Datum::string("a"), Datum::string("b")));
    assert_eq!(of(&list, both), Truths::TRUE | Truths::FALSE);
    let left = list.residual(&Told(HashMap::from([(
        1,
        range(Datum::string("b"), Datum::string("z")),
    )])));
    assert_eq!(left.to_string(), "c1 IN ('b')");
    assert_eq!(
        of(&Predicate::In(text, vec![]), Known::anything()),
        Truths::FALSE | Truths::NULL
    );
}

#[test]
fn prefixes_decide_by_truncated_bounds() {
    let starts =
        |prefix: &str| Predicate::StartsWith(column(1, &PrimitiveType::String), prefix.to_owned());
    let known = filled(range(Datum::string("abc"), Datum::string("abd")));
    assert_eq!(of(&starts("ab"), known.clone()), Truths::TRUE);
    assert_eq!(
        of(&starts("abc"), known.clone()),
        Truths::TRUE | Truths::FALSE
    );
    assert_eq!(
        of(&starts("abcdef"), known.clone()),
        Truths::TRUE | Truths::FALSE
    );
    assert_eq!(of(&starts("abb"), known.clone()), Truths::FALSE);
    assert_eq!(of(&starts("b"), known.clone()), Truths::FALSE);
    assert_eq!(of(&starts(""), known), Truths::TRUE);
}

#[test]
fn what_is_sure_falls_away() {
    let sure = against(&PrimitiveType::Int, Comparison::Less, Datum::int(100));
    let open = Predicate::IsNull(column(2, &PrimitiveType::Int));
    let never = against(&PrimitiveType::Int, Comparison::Greater, Datum::int(100));
    let known = Told(HashMap::from([(
        1,
        filled(range(Datum::int(1), Datum::int(2))),
    )]));
    let left = |condition: &Predicate| condition.residual(&known).to_string();
    assert_eq!(left(&sure.clone().and(open.clone())), "c2 IS NULL");
    assert_eq!(left(&never.clone().or(open.clone())), "c2 IS NULL");
    assert_eq!(left(&never.clone().and(open.clone())), "false");
    assert_eq!(left(&sure.clone().or(open.clone())), "true");
    assert_eq!(left(&sure.and(open).negate()), "NOT (c2 IS NULL)");
    let null = Told(HashMap::from([(1, Known::null())]));
    assert_eq!(never.residual(&null).to_string(), "false");
    assert_eq!(never.clone().negate().residual(&null).to_string(), "false");
    let unknown = Predicate::IsUnknown(Box::new(never));
    assert_eq!(unknown.residual(&null).to_string(), "true");
}
