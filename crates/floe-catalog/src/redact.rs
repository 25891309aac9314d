//! URIs without their secrets: everything of a URI that is printed or stored in an error passes here.

use std::borrow::Cow;

/// What stands in place of a secret.
const HIDDEN: &str = "***";

/// Words that mark a query parameter as secret.
const SECRET_WORDS: [&str; 9] = [
    "password",
    "passwd",
    "pwd",
    "secret",
    "token",
    "sig",
    "credential",
    "accountkey",
    "apikey",
];

/// A URI with the password of its user part and the secret values of its query hidden.
///
/// Works on text, not on a parsed URI: what does not parse must not show its secret either, and `jdbc:postgresql:` or
/// `postgresql+psycopg2:` are no URLs to a parser. When a password holds `@`, `/` or `?` unescaped, rather too much is
/// hidden than too little.
pub fn redact_uri(uri: &str) -> Cow<'_, str> {
    match password(uri) {
        Some((start, end)) => Cow::Owned(format!(
            "{}{HIDDEN}{}",
            &uri[..start],
            redact_query(&uri[end..])
        )),
        None => redact_query(uri),
    }
}

/// From where to where the password of `scheme://user:password@host` reaches.
fn password(uri: &str) -> Option<(usize, usize)> {
    let start = uri.find("//")? + 2;
    let rest = &uri[start..];
    let at = rest.rfind('@')?;
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let is_host = !authority.contains('@')
        && authority
            .split_once(':')
            .is_none_or(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let colon = rest[..at].find(':')?;
    (!is_host).then_some((start + colon + 1, start + at))
}

fn redact_query(text: &str) -> Cow<'_, str> {
    let is_secret = |pair: &str| {
        let key = pair
            .split('=')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        SECRET_WORDS.iter().any(|word| key.contains(word))
    };
    match text.split_once('?') {
        Some((body, query)) if query.split('&').any(is_secret) => {
            let hide = |pair: &str| match pair.split_once('=') {
                Some((key, _)) if is_secret(pair) => format!("{key}={HIDDEN}"),
                _ => pair.to_string(),
            };
            Cow::Owned(format!(
                "{body}?{}",
                query.split('&').map(hide).collect::<Vec<_>>().join("&")
            ))
        }
        _ => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::redact_uri;

    #[test]
    fn passwords_and_secret_parameters_are_hidden() {
        for (uri, shown) in [
            (
                "postgresql://u:pw@h:5432/db",
                "postgresql://u:***@h:5432/db",
            ),
            (
                "postgresql+psycopg2://u:p@w/x?y@h/db",
                "postgresql+psycopg2://u:***@h/db",
            ),
            ("postgresql://u:p/w@h/db", "postgresql://u:***@h/db"),
            (
                "jdbc:postgresql://h/db?user=u&password=pw",
                "jdbc:postgresql://h/db?user=u&password=***",
            ),
            (
                "jdbc:postgresql:db?password=a=b",
                "jdbc:postgresql:db?password=***",
            ),
            ("https://h/x?sig=abc&se=1", "https://h/x?sig=***&se=1"),
        ] {
            assert_eq!(redact_uri(uri), shown);
        }
    }

    #[test]
    fn what_holds_no_secret_stays() {
        for uri in [
            "sqlite:////lake/catalog.db",
            "postgresql://u@h/db",
            "postgresql://h:5432/db?application_name=a@b",
            "abfss://container@account.dfs.core.windows.net/x",
            "s3://bucket/a@b",
            "https://h:8181/path?warehouse=w",
        ] {
            assert_eq!(redact_uri(uri), uri);
        }
    }
}
