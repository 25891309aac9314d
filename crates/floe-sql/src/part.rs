//! What a name after a table's own, behind a dollar sign, means: another state of the table.

use floe_scan::At;

/// The state that `branch_NAME`, `tag_NAME`, `snapshot_ID`, or `at_TIME` as RFC 3339 writes it, means; `None` for other text.
pub(crate) fn state(text: &str) -> Option<At> {
    let (kind, name) = text.split_once('_')?;
    match kind {
        "branch" | "tag" => Some(At::Ref(name.to_string())),
        "snapshot" => name.parse().ok().map(At::Snapshot),
        "at" => At::as_of(name).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_behind_a_dollar_sign() {
        assert_eq!(state("branch_a_b"), Some(At::Ref("a_b".into())));
        assert_eq!(state("tag_v1"), Some(At::Ref("v1".into())));
        assert_eq!(state("snapshot_-7"), Some(At::Snapshot(-7)));
        assert_eq!(
            state("at_2026-03-01T12:00:00Z"),
            Some(At::as_of("2026-03-01T12:00:00Z").unwrap())
        );
        for nothing in ["", "snapshot_x", "branch", "other_x", "at_noon"] {
            assert_eq!(state(nothing), None, "{nothing}");
        }
    }
}
