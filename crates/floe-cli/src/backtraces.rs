//! Keeps `RUST_BACKTRACE` from halving the speed of reads.
//!
//! iceberg-rust makes an error, and with it a backtrace, for every column of every file before it knows whether it will
//! need one. Where the user asks for backtraces, those of panics stay on; those inside errors, which floe never prints,
//! are turned off by starting the same program once more in this very process.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What the standard library asks first when an error captures a backtrace.
const ERRORS: &str = "RUST_LIB_BACKTRACE";

/// Returns at once unless backtraces are on and nothing was said of those in errors.
pub(crate) fn leave_to_panics() {
    let wanted = env::var_os("RUST_BACKTRACE").is_some_and(|wanted| wanted != "0");
    if !wanted || env::var_os(ERRORS).is_some() {
        return;
    }
    let Ok(program) = env::current_exe() else {
        return;
    };
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_else(|| program.clone().into());
    // Only returns if it failed, and then all goes on, slower.
    let _slower = Command::new(program)
        .arg0(name)
        .args(arguments)
        .env(ERRORS, "0")
        .exec();
}
