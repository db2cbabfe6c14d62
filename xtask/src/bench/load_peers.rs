//! The other load generators that the bench of ours is held against: sysbench, from the distribution's packages, and
//! go-ycsb with its PostgreSQL binding, built from its Go module.
//!
//! Owns where they come from and how they are told what to do; nothing is installed, both lie below the target folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

/// What sysbench needs beside the C library, as Debian packages it.
const SYSBENCH_PACKAGES: [&str; 6] =
    ["sysbench", "libluajit-5.1-2", "libluajit-5.1-common", "libmariadb3", "libpq5", "libaio1"];
/// Where the libraries of those packages lie in what was unpacked.
const LIBRARY_FOLDERS: [&str; 2] = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];

/// Version of go-ycsb that is built.
const GO_YCSB_VERSION: &str = "v1.0.1";
/// go-ycsb's own program brings every database's client with it, the build of which takes a quarter of an hour. This is
/// the same with PostgreSQL's binding alone: its workload, its client, its measurement. Properties are its arguments.
const GO_YCSB_PROGRAM: &str = r#"package main

import (
	"context"
	"log"
	"os"
	"strings"

	"github.com/magiconair/properties"
	_ "github.com/pingcap/go-ycsb/db/pg"
	"github.com/pingcap/go-ycsb/pkg/client"
	"github.com/pingcap/go-ycsb/pkg/measurement"
	_ "github.com/pingcap/go-ycsb/pkg/workload"
	"github.com/pingcap/go-ycsb/pkg/ycsb"
)

func main() {
	given := properties.NewProperties()
	for _, argument := range os.Args[1:] {
		name, value, _ := strings.Cut(argument, "=")
		given.Set(name, value)
	}
	measurement.InitMeasure(given)
	workload, err := ycsb.GetWorkloadCreator("core").Create(given)
	if err != nil {
		log.Fatal(err)
	}
	database, err := ycsb.GetDBCreator("pg").Create(given)
	if err != nil {
		log.Fatal(err)
	}
	client.NewClient(given, workload, client.DbWrapper{DB: database}).Run(context.Background())
	measurement.Output()
	database.Close()
}
"#;

/// sysbench, ready to be started.
#[derive(Debug)]
pub(super) struct Sysbench {
    program: PathBuf,
    /// Where its tests lie, which look for each other in the working directory.
    tests: PathBuf,
    libraries: Option<String>,
}

impl Sysbench {
    /// The machine's own, or one unpacked from the distribution's packages.
    ///
    /// # Errors
    /// When it cannot be had; the reason.
    pub(super) fn find() -> anyhow::Result<Self> {
        let installed = Path::new("/usr/share/sysbench");
        if installed.join("oltp_point_select.lua").exists() {
            return Ok(Self { program: "sysbench".into(), tests: installed.to_owned(), libraries: None });
        }
        let tree = crate::target_directory().join("bench/sysbench");
        if !tree.join("usr/bin/sysbench").exists() {
            unpack(&tree)?;
        }
        let tree = tree.canonicalize()?;
        let libraries = LIBRARY_FOLDERS.map(|folder| tree.join(folder).display().to_string()).join(":");
        Ok(Self {
            program: tree.join("usr/bin/sysbench"),
            tests: tree.join("usr/share/sysbench"),
            libraries: Some(libraries),
        })
    }

    /// A command that does what `job` says with the test `oltp_point_select`.
    pub(super) fn command(&self, options: &[String], job: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("oltp_point_select.lua").args(options).arg(job).current_dir(&self.tests);
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command
    }
}

/// Downloads the packages and unpacks them; what is there afterwards is whole.
fn unpack(tree: &Path) -> anyhow::Result<()> {
    let parent = tree.parent().context("a folder above")?;
    fs::create_dir_all(parent).with_context(|| format!("make {}", parent.display()))?;
    let folder = tempfile::tempdir_in(parent).context("a folder")?;
    ended(
        Command::new("apt-get")
            .args(["download", "-qq"])
            // As root apt would hand the download to a user that may not write into this folder.
            .args(["-o", "APT::Sandbox::User="])
            .args(SYSBENCH_PACKAGES)
            .current_dir(folder.path()),
    )?;
    let whole = folder.path().join("tree");
    for entry in fs::read_dir(folder.path())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            ended(Command::new("dpkg-deb").arg("-x").arg(&path).arg(&whole))?;
        }
    }
    ensure!(whole.join("usr/bin/sysbench").exists(), "the packages brought no usr/bin/sysbench");
    fs::rename(&whole, tree).with_context(|| format!("put {} in place", tree.display()))
}

/// Builds go-ycsb with its PostgreSQL binding, unless it is there already; where it lies.
///
/// # Errors
/// When there is no `go`, or the module cannot be had or built; the reason.
pub(super) fn go_ycsb() -> anyhow::Result<PathBuf> {
    let folder = crate::target_directory().join("bench/go-ycsb");
    let program = folder.join("go-ycsb-pg");
    if !program.exists() {
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        let folder = folder.canonicalize()?;
        let module =
            format!("module sample\n\ngo 1.21\n\nrequire github.com/pingcap/go-ycsb {GO_YCSB_VERSION}\n");
        for (name, text) in [("main.go", GO_YCSB_PROGRAM), ("go.mod", &module)] {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        }
        ended(
            Command::new("go")
                .args(["build", "-o", "go-ycsb-pg", "."])
                .current_dir(&folder)
                .env("GOPATH", folder.join("go"))
                .env("GOCACHE", folder.join("cache"))
                .env("GOFLAGS", "-mod=mod -modcacherw"),
        )?;
    }
    Ok(program.canonicalize()?)
}

/// What it is called in the result.
pub(super) fn go_ycsb_name() -> String {
    format!("go-ycsb {}, pg", GO_YCSB_VERSION.trim_start_matches('v'))
}

fn ended(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("start {program}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{program}: {}: {}", output.status, complaint.lines().last().unwrap_or_default());
    }
    Ok(())
}
