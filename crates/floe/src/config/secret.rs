//! Which values are secret, and how they are shown instead. Every place that prints a value asks here.

use floe_catalog::redact_uri;

/// What stands in place of a secret.
const HIDDEN: &str = "***";

/// Words that make a property secret wherever they stand in its key.
const SECRET_WORDS: [&str; 11] = [
    "secret",
    "password",
    "passwd",
    "token",
    "credential",
    "connection-string",
    "private-key",
    "account-key",
    "api-key",
    "encryption-key",
    "sse.key",
];

/// Whether a property's value must not be shown, by its key.
pub(super) fn is_secret_key(key: &str) -> bool {
    let key = key.to_lowercase().replace('_', "-");
    let has_word = |word: &str| key.split(['.', '-']).any(|part| part == word);
    SECRET_WORDS.iter().any(|word| key.contains(word))
        || has_word("sas")
        || key.strip_prefix("header.").is_some_and(|name| {
            ["auth", "cookie", "key", "session"]
                .iter()
                .any(|word| name.contains(word))
        })
}

/// Whether a property holds a secret: by its key, or as a password within a URI.
pub(super) fn holds_secret(key: &str, value: &str) -> bool {
    !value.is_empty() && (is_secret_key(key) || redact_uri(value) != value)
}

/// A property's value as it may be shown.
pub(super) fn show(key: &str, value: &str) -> String {
    const TAIL: usize = 4;
    if value.is_empty() {
        return String::new();
    }
    if is_secret_key(key) {
        return HIDDEN.to_string();
    }
    // No secret, but half of a pair: the end tells which key it is.
    if key
        .to_lowercase()
        .replace('_', "-")
        .contains("access-key-id")
    {
        let count = value.chars().count();
        let tail: String = value.chars().skip(count.saturating_sub(TAIL)).collect();
        return if count >= 2 * TAIL {
            format!("{HIDDEN}{tail}")
        } else {
            HIDDEN.to_string()
        };
    }
    redact_uri(value).into_owned()
}
