//! Facts of the build, for `conchart --version -v`: what a report of a bug needs, and no path or name of a machine.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    let rustc = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let of_cargo = |name: &str| env::var(name).unwrap_or_default();
    println!("cargo::rustc-env=CONCHART_RUSTC={}", rustc.unwrap_or_default());
    println!("cargo::rustc-env=CONCHART_TARGET={}", of_cargo("TARGET"));
    println!("cargo::rustc-env=CONCHART_PROFILE={}", profile(&of_cargo("OUT_DIR")));
    println!("cargo::rustc-env=CONCHART_OPT_LEVEL={}", of_cargo("OPT_LEVEL"));
}

/// The profile's own name: `PROFILE` is only the one it inherits from. Output is in `target/[TARGET/]PROFILE/build/…`.
fn profile(output: &str) -> &str {
    let mut folders = output.rsplit(['/', '\\']);
    folders.find(|name| *name == "build");
    folders.next().unwrap_or("unknown")
}
