//! Man pages and completions of shells, from the arguments themselves, so that they say what the program accepts. A hidden
//! door: a release asks for them, nobody who runs scenarios does.

use std::fs;
use std::io;
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::aot::Shell;

use crate::arguments::Arguments;

/// The first argument that asks for them; the second is the folder.
pub const SUBCOMMAND: &str = "write-manual";

/// Writes `man/man1/` and `completions/` below a folder.
pub fn write(folder: &Path) -> io::Result<()> {
    let pages = folder.join("man/man1");
    fs::create_dir_all(&pages)?;
    clap_mangen::generate_to(Arguments::command(), &pages)?;
    let completions = folder.join("completions");
    fs::create_dir_all(&completions)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::aot::generate_to(shell, &mut Arguments::command(), "holdfast", &completions)?;
    }
    Ok(())
}
