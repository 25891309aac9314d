//! A file that lies in the working directory may have come with anyone's download. It may configure catalogs, but it
//! may not send credentials that came from elsewhere (environment, home, a file named on purpose) to a place of its choice.

use std::collections::BTreeMap;

use super::catalog::CatalogValues;
use super::environment::Environment;
use super::error::{Error, Result};
use super::secret::{holds_secret, is_secret_key};
use super::source::{Found, Source};

/// Words of a key that say where requests, and so credentials, go.
const PLACE_WORDS: [&str; 12] = [
    "uri",
    "url",
    "endpoint",
    "host",
    "hostname",
    "proxy",
    "authority",
    "server",
    "signer",
    "ssl",
    "path",
    "account",
];

/// Credentials that clients find by themselves, outside all configuration of floe.
struct Ambient {
    /// What they open.
    what: &'static str,
    /// Variables that hold or lead to them.
    variables: &'static [&'static str],
    /// A file below the home directory that holds them.
    home_file: Option<&'static str>,
    /// Whether a property of this key decides where they go.
    redirects: fn(&str, &str) -> bool,
    /// Properties whose presence means that the ambient ones are not used.
    replaced_by: &'static [&'static str],
}

const AMBIENT: [Ambient; 4] = [
    Ambient {
        what: "AWS",
        variables: &[
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "AWS_SESSION_TOKEN",
            "AWS_PROFILE",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        ],
        home_file: Some(".aws/credentials"),
        redirects: |key, value| {
            (key.starts_with("s3.") || key.starts_with("client.")) && is_place(key, value)
        },
        replaced_by: &[
            "s3.access-key-id",
            "s3.allow-anonymous",
            "s3.anonymous",
            "s3.disable-config-load",
        ],
    },
    Ambient {
        what: "Google Cloud",
        variables: &["GOOGLE_APPLICATION_CREDENTIALS"],
        home_file: Some(".config/gcloud/application_default_credentials.json"),
        redirects: |key, value| key.starts_with("gcs.") && is_place(key, value),
        replaced_by: &[
            "gcs.oauth2.token",
            "gcs.credentials-json",
            "gcs.allow-anonymous",
            "gcs.no-auth",
            "gcs.disable-config-load",
        ],
    },
    Ambient {
        what: "Azure",
        variables: &[
            "AZURE_STORAGE_ACCOUNT_KEY",
            "AZURE_STORAGE_KEY",
            "AZURE_STORAGE_SAS_TOKEN",
            "AZURE_CLIENT_SECRET",
        ],
        home_file: None,
        redirects: |key, value| key.starts_with("adls.") && is_place(key, value),
        replaced_by: &[
            "adls.account-key",
            "adls.sas-token",
            "adls.client-secret",
            "adls.connection-string",
        ],
    },
    Ambient {
        what: "PostgreSQL",
        variables: &["PGPASSWORD"],
        home_file: None,
        redirects: |key, value| {
            key == "uri" && value.contains("postgres") && !holds_secret(key, value)
        },
        replaced_by: &["jdbc.password"],
    },
];

/// Refuse a catalog whose credentials would follow a stray file.
pub(super) fn check(
    catalog: &CatalogValues,
    location_map: &BTreeMap<String, Found<String>>,
    environment: &Environment,
) -> Result<()> {
    let stray = || {
        catalog
            .properties
            .iter()
            .filter(|(_, found)| found.source.is_stray())
    };
    let own_secret = catalog
        .properties
        .iter()
        .find(|(key, found)| holds_secret(key, &found.value) && !found.source.is_stray());
    if let Some((secret, found)) = own_secret {
        if let Some((place, chosen)) = stray().find(|(key, found)| is_place(key, &found.value)) {
            return Err(refusal(
                &catalog.name,
                &format!("`{secret}`, {}", found.source),
                place,
                &chosen.source,
            ));
        }
        // Azure's locations name the host that gets the request, and with it the signature.
        let azure = secret.starts_with("adls.");
        if let Some((from, chosen)) = location_map.iter().find(|(_, to)| azure && names_host(to)) {
            let place = format!("location-map.{from:?}");
            return Err(refusal(
                &catalog.name,
                &format!("`{secret}`, {}", found.source),
                &place,
                &chosen.source,
            ));
        }
    }
    for ambient in &AMBIENT {
        let replaced = ambient.replaced_by.iter().any(|key| {
            let is_on = |value: &str| !value.is_empty() && !value.eq_ignore_ascii_case("false");
            catalog
                .properties
                .iter()
                .any(|(held, found)| held.starts_with(key) && is_on(&found.value))
        });
        let Some(source) = ambient.found(environment).filter(|_| !replaced) else {
            continue;
        };
        if let Some((place, chosen)) =
            stray().find(|(key, found)| (ambient.redirects)(key, &found.value))
        {
            let credentials = format!("for {}, {source}", ambient.what);
            return Err(refusal(&catalog.name, &credentials, place, &chosen.source));
        }
    }
    Ok(())
}

impl Ambient {
    /// Where credentials of this kind lie about, if they do.
    fn found(&self, environment: &Environment) -> Option<String> {
        let variable = self
            .variables
            .iter()
            .find(|name| environment.get(name).is_some());
        variable.map(|name| format!("variable {name}")).or_else(|| {
            let file = environment.home.as_ref()?.join(self.home_file?);
            file.is_file().then(|| format!("file {}", file.display()))
        })
    }
}

/// Whether a property decides which machine is talked to.
fn is_place(key: &str, value: &str) -> bool {
    if value.is_empty() {
        return false;
    }
    let has_word = key
        .split(['.', '-', '_'])
        .any(|word| PLACE_WORDS.contains(&word));
    // A region becomes part of a host's name, and could be more than a name.
    let is_odd_region = key.ends_with("region")
        && !value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let is_rest = key.starts_with("rest.");
    let is_switch = matches!(value.to_ascii_lowercase().as_str(), "true" | "false");
    is_odd_region
        || ((has_word || is_rest)
            && !is_switch
            && (!is_secret_key(key) || key.contains("connection-string")))
}

/// Whether a stray entry of the location map points to a place that its own text names.
fn names_host(to: &Found<String>) -> bool {
    let scheme = to
        .value
        .split(':')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    to.source.is_stray() && matches!(scheme.as_str(), "abfs" | "abfss" | "wasb" | "wasbs")
}

fn refusal(catalog: &str, credentials: &str, place: &str, chosen: &Source) -> Error {
    let file = match chosen {
        Source::File { path, .. } => path.display().to_string(),
        other => other.to_string(),
    };
    Error::new(format!(
        "refusing to use catalog {catalog:?}: `{place}` in {file}, which was only found in the working directory, would \
         decide where credentials from elsewhere go ({credentials})"
    ))
    .with_hint(format!("if you trust that file, name it: --config {file}, or FLOE_CONFIG={file}"))
}
