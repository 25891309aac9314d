//! What every verb starts from: flags, the terminal, and the SDK opened as they say.

use anyhow::Result;
use floe::Floe;
use floe::config::{Config, Discover, Environment};

use crate::args::Globals;
use crate::ui::Ui;

/// Flags and terminal.
#[derive(Debug)]
pub(crate) struct Context {
    globals: Globals,
    pub(crate) ui: Ui,
}

impl Context {
    pub(crate) fn new(globals: Globals) -> Self {
        let ui = Ui::new(globals.json, globals.quiet);
        Self { globals, ui }
    }

    /// The configuration that flags, environment and files give.
    pub(crate) fn config(&self, offline: bool) -> Result<Config> {
        let environment = Environment::of_process().map_err(floe::Error::from)?;
        let discover = Discover {
            environment,
            config: self.globals.config.clone(),
            catalog: self.globals.catalog.clone(),
            offline,
        };
        Ok(Config::discover(&discover).map_err(floe::Error::from)?)
    }

    /// The SDK over that configuration.
    pub(crate) fn floe(&self, offline: bool) -> Result<Floe> {
        Ok(Floe::builder()
            .config(self.config(offline)?)
            .offline(offline)
            .build()?)
    }

    /// Says which tables were read as they were seen last, for that is not how they may be now.
    pub(crate) fn tell_last_seen(&self, floe: &Floe) {
        for seen in floe.used_last_seen() {
            let name = seen
                .ident()
                .map(|ident| ident.to_string())
                .unwrap_or(seen.table);
            self.ui.status(&format!(
                "offline: {name} as it was seen last, {}",
                seen.seen.format("%Y-%m-%d %H:%M:%S UTC")
            ));
        }
    }
}
