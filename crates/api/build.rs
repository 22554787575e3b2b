//! Writes the files of the page to the output folder, without comments and needless white space. From there they are
//! compiled into the library. Types and tests of the page are left out.

#[path = "build/strip.rs"]
mod strip;

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=page");
    println!("cargo::rerun-if-changed=build");
    let output = env::var_os("OUT_DIR").map(PathBuf::from);
    let output = output
        .ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?
        .join("page");
    if output.exists() {
        fs::remove_dir_all(&output)?;
    }
    copy(Path::new("page"), &output)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            if !path.ends_with("tests") {
                copy(&path, &target)?;
            }
            continue;
        }
        let strip = match path.extension().and_then(|extension| extension.to_str()) {
            Some("js") => strip::script,
            Some("css") => strip::style,
            Some("html" | "svg") => strip::markup,
            _ => continue,
        };
        fs::write(target, strip(&fs::read_to_string(&path)?))?;
    }
    Ok(())
}
