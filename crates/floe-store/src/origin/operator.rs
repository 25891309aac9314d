//! From Iceberg's properties to an opendal operator. Names as Iceberg's Java and Python FileIO have them.

use std::collections::HashMap;

use opendal::services::{AzblobConfig, AzdlsConfig, FsConfig, GcsConfig, MemoryConfig, S3Config};
use opendal::{Configurator, Operator};

use crate::error::{Error, ErrorKind, Result};
use crate::location::{Location, Scheme};

/// Iceberg's properties of a FileIO.
pub(crate) type Properties = HashMap<String, String>;

/// Build the operator for the bucket of a location.
pub(crate) fn build(location: &Location, properties: &Properties) -> Result<Operator> {
    match location.scheme {
        Scheme::S3 => finish(s3(location, properties)?),
        Scheme::Gcs => finish(gcs(location, properties)),
        Scheme::Adls => finish(adls(location, properties)?),
        Scheme::Azblob => finish(azblob(location, properties)?),
        Scheme::File => finish(fs()),
        Scheme::Memory => finish(MemoryConfig::default()),
    }
}

fn finish(config: impl Configurator) -> Result<Operator> {
    let built = Operator::from_config(config).map(opendal::OperatorBuilder::finish);
    built.map_err(|error| {
        Error::new(
            ErrorKind::Invalid,
            format!("can't use the storage properties: {}", error.message()),
        )
    })
}

fn fs() -> FsConfig {
    let mut config = FsConfig::default();
    config.root = Some("/".into());
    config
}

fn is_true(properties: &Properties, name: &str) -> bool {
    properties.get(name).is_some_and(|value| {
        matches!(
            value.to_ascii_lowercase().as_str(),
            "true" | "t" | "1" | "on"
        )
    })
}

fn s3(location: &Location, properties: &Properties) -> Result<S3Config> {
    let get = |name: &str| properties.get(name).cloned();
    let mut config = S3Config::default();
    config.bucket = location.authority.clone();
    config.endpoint = get("s3.endpoint");
    config.access_key_id = get("s3.access-key-id");
    config.secret_access_key = get("s3.secret-access-key");
    config.session_token = get("s3.session-token");
    config.region = get("client.region").or_else(|| get("s3.region"));
    if config.region.is_none() && config.endpoint.is_some() {
        // Servers that are not Amazon's have no regions, but signatures name one.
        config.region = Some("us-east-1".into());
    }
    // Iceberg's default is virtual-host style. A server named by an endpoint without a bucket's name
    // in its certificate or DNS rarely has it: there PyIceberg uses paths, and so do we.
    config.enable_virtual_host_style = match properties.get("s3.path-style-access") {
        Some(_) => !is_true(properties, "s3.path-style-access"),
        None => is_true(properties, "s3.force-virtual-addressing") || config.endpoint.is_none(),
    };
    config.role_arn = get("client.assume-role.arn");
    config.external_id = get("client.assume-role.external-id");
    config.role_session_name = get("client.assume-role.session-name");
    config.skip_signature =
        is_true(properties, "s3.allow-anonymous") || is_true(properties, "s3.anonymous");
    config.disable_ec2_metadata = is_true(properties, "s3.disable-ec2-metadata");
    config.disable_config_load =
        is_true(properties, "s3.disable-config-load") || config.access_key_id.is_some();
    match properties
        .get("s3.sse.type")
        .map(|kind| kind.to_ascii_lowercase())
        .as_deref()
    {
        None | Some("none") => {}
        Some("s3") => config.server_side_encryption = Some("AES256".into()),
        Some("kms") => {
            config.server_side_encryption = Some("aws:kms".into());
            config.server_side_encryption_aws_kms_key_id = get("s3.sse.key");
        }
        Some("custom") => {
            config.server_side_encryption_customer_algorithm = Some("AES256".into());
            config.server_side_encryption_customer_key = get("s3.sse.key");
            config.server_side_encryption_customer_key_md5 = get("s3.sse.md5");
        }
        Some(other) => {
            return Err(Error::new(
                ErrorKind::Invalid,
                format!("s3.sse.type is {other:?}; it must be none, s3, kms or custom"),
            ));
        }
    }
    Ok(config)
}

fn gcs(location: &Location, properties: &Properties) -> GcsConfig {
    let get = |name: &str| properties.get(name).cloned();
    let mut config = GcsConfig::default();
    config.bucket = location.authority.clone();
    config.endpoint = get("gcs.service.path").or_else(|| get("gcs.service.host"));
    config.credential = get("gcs.credentials-json");
    config.token = get("gcs.oauth2.token");
    config.skip_signature =
        is_true(properties, "gcs.no-auth") || is_true(properties, "gcs.allow-anonymous");
    config.disable_vm_metadata = is_true(properties, "gcs.disable-vm-metadata");
    config.disable_config_load = is_true(properties, "gcs.disable-config-load");
    config
}

/// The parts of `container@account.host`.
struct Azure<'a> {
    container: &'a str,
    account: &'a str,
    host: &'a str,
}

impl<'a> Azure<'a> {
    fn parse(location: &'a Location) -> Result<Self> {
        let parts = location.authority.split_once('@');
        let split =
            parts.and_then(|(container, host)| Some((container, host, host.split_once('.')?.0)));
        let (container, host, account) = split.ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                format!("location {location} names no container@account.host"),
            )
        })?;
        Ok(Self {
            container,
            account,
            host,
        })
    }

    /// A property of all accounts, or of this one: vended credentials come with the account's name behind.
    fn property(&self, properties: &Properties, name: &str) -> Option<String> {
        let named = [
            format!("{name}.{}", self.host),
            format!("{name}.{}", self.account),
            name.to_string(),
        ];
        named.iter().find_map(|name| properties.get(name).cloned())
    }

    fn endpoint(&self, properties: &Properties) -> String {
        properties
            .get("adls.endpoint")
            .cloned()
            .unwrap_or_else(|| format!("https://{}", self.host))
    }
}

fn adls(location: &Location, properties: &Properties) -> Result<AzdlsConfig> {
    let azure = Azure::parse(location)?;
    let get = |name: &str| properties.get(name).cloned();
    Ok(AzdlsConfig {
        filesystem: azure.container.to_string(),
        endpoint: Some(azure.endpoint(properties)),
        account_name: get("adls.account-name").or_else(|| Some(azure.account.to_string())),
        account_key: azure.property(properties, "adls.account-key"),
        sas_token: azure.property(properties, "adls.sas-token"),
        tenant_id: get("adls.tenant-id"),
        client_id: get("adls.client-id"),
        client_secret: get("adls.client-secret"),
        authority_host: get("adls.authority-host"),
        ..AzdlsConfig::default()
    })
}

fn azblob(location: &Location, properties: &Properties) -> Result<AzblobConfig> {
    let azure = Azure::parse(location)?;
    Ok(AzblobConfig {
        container: azure.container.to_string(),
        endpoint: Some(azure.endpoint(properties)),
        account_name: properties
            .get("adls.account-name")
            .cloned()
            .or_else(|| Some(azure.account.to_string())),
        account_key: azure.property(properties, "adls.account-key"),
        sas_token: azure.property(properties, "adls.sas-token"),
        ..AzblobConfig::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(pairs: &[(&str, &str)]) -> Properties {
        pairs
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect()
    }

    #[test]
    fn s3_properties_reach_the_client() {
        let location = Location::parse("s3a://bucket/key").unwrap();
        let config = s3(
            &location,
            &properties(&[
                ("s3.endpoint", "http://e"),
                ("s3.access-key-id", "id"),
                ("s3.secret-access-key", "key"),
                ("s3.session-token", "token"),
            ]),
        )
        .unwrap();
        assert_eq!(
            (config.bucket.as_str(), config.region.as_deref()),
            ("bucket", Some("us-east-1"))
        );
        assert!(!config.enable_virtual_host_style && config.session_token.is_some());
        let amazon = s3(
            &location,
            &properties(&[("client.region", "eu-north-1"), ("s3.region", "x")]),
        )
        .unwrap();
        assert!(amazon.enable_virtual_host_style && amazon.region.as_deref() == Some("eu-north-1"));
        let paths = s3(&location, &properties(&[("s3.path-style-access", "true")])).unwrap();
        assert!(!paths.enable_virtual_host_style);
        assert!(s3(&location, &properties(&[("s3.sse.type", "rot13")])).is_err());
    }

    #[test]
    fn vended_azure_tokens_are_found_under_the_account() {
        let location = Location::parse("abfss://lake@acme.dfs.core.windows.net/t/x").unwrap();
        let config = adls(
            &location,
            &properties(&[("adls.sas-token.acme.dfs.core.windows.net", "sv=1")]),
        )
        .unwrap();
        assert_eq!(config.filesystem, "lake");
        assert_eq!(
            config.endpoint.as_deref(),
            Some("https://acme.dfs.core.windows.net")
        );
        assert_eq!(
            (config.account_name.as_deref(), config.sas_token.as_deref()),
            (Some("acme"), Some("sv=1"))
        );
        assert!(adls(&Location::parse("abfs://lake/x").unwrap(), &properties(&[])).is_err());
    }

    #[test]
    fn every_scheme_builds_an_operator() {
        for (location, given) in [
            ("s3://b/k", vec![("s3.endpoint", "http://127.0.0.1:1")]),
            ("gs://b/k", vec![]),
            (
                "abfss://c@a.dfs.core.windows.net/k",
                vec![("adls.account-key", "a2V5")],
            ),
            (
                "wasbs://c@a.blob.core.windows.net/k",
                vec![("adls.account-key", "a2V5")],
            ),
            ("file:///x", vec![]),
            ("memory:/x", vec![]),
        ] {
            build(&Location::parse(location).unwrap(), &properties(&given)).unwrap();
        }
    }
}
