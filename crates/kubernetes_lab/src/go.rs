//! Kubernetes built from its Go module, with Go's own checksum database as the judge of what was downloaded.
//!
//! The module cannot be installed as it is: it replaces its parts by folders of its own repository. A module around it replaces
//! them by their published versions. Owns that module and the order of the steps.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::programs::run;
use serde::Deserialize;

use crate::pieces::{GO, KUBERNETES, MODULE, commands};

/// What the module around it is called.
const AROUND: &str = "holdfast.invalid/kubernetes";
/// Measured with Go 1.26 and empty caches: processor seconds of the build, and seconds of the download.
const BUILD_PROCESSOR_SECONDS: usize = 600;
const DOWNLOAD_SECONDS: usize = 40;

/// Why it could not be built.
#[derive(Debug, thiserror::Error)]
pub enum GoError {
    /// There is no Go.
    #[error(
        "Kubernetes is built from its Go module, and `go` was not found ({why}): install Go {}.{} or newer, for instance from \
         your distribution's backports, and have it on PATH",
        GO.0,
        GO.1
    )]
    NoGo {
        /// What the system said.
        why: String,
    },
    /// Go is too old.
    #[error("Kubernetes {KUBERNETES} needs Go {}.{} or newer, and `go` here is {found}", GO.0, GO.1)]
    OldGo {
        /// What it says of itself.
        found: String,
    },
    /// A step failed.
    #[error("{step}: {why}")]
    Step {
        /// What was being done.
        step: &'static str,
        /// The last words of what was run.
        why: String,
    },
}

/// Of what Go says of a download.
#[derive(Deserialize)]
struct Download {
    #[serde(rename = "GoMod")]
    go_mod: PathBuf,
    #[serde(rename = "Sum")]
    sum: String,
}

/// Builds every command into `target`. `staging` keeps the caches of Go, with which a build that was broken off goes on.
///
/// # Errors
/// When there is no Go that will do, or a step fails.
pub(crate) fn build(staging: &Path, target: &Path, progress: &mut dyn FnMut(&str)) -> Result<(), GoError> {
    check_version(staging)?;
    let around = staging.join("around");
    let step = |step: &'static str| move |why: String| GoError::Step { step, why };
    let folder =
        |path: &Path| fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()));
    folder(&around).map_err(step("make a folder"))?;
    folder(target).map_err(step("make a folder"))?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    progress(&format!(
        "building Kubernetes {KUBERNETES} from its Go module: about {} minutes on {processors} processors, 2 GB of memory and 4 GB \
         of disk meanwhile; once only",
        minutes(processors)
    ));
    let version = format!("{MODULE}@v{KUBERNETES}");
    let said = run(go(staging, &around).args(["mod", "download", "-json", &version]));
    let said = said.map_err(step("download the module"))?;
    let download: Download =
        serde_json::from_str(&said).map_err(|error| step("read what Go says of it")(error.to_string()))?;
    let own = fs::read_to_string(&download.go_mod)
        .map_err(|error| step("read its go.mod")(format!("{}: {error}", download.go_mod.display())))?;
    for (name, text) in [("go.mod", around_it(&parts(&own))), ("commands.go", imports())] {
        let path = around.join(name);
        fs::write(&path, text)
            .map_err(|error| step("write the module around it")(format!("{}: {error}", path.display())))?;
    }
    progress(&format!("its checksum is {}; downloading what it needs", download.sum));
    run(go(staging, &around).args(["mod", "tidy"])).map_err(step("download what it needs"))?;
    progress("compiling");
    let packages: Vec<String> = commands().map(|command| format!("{MODULE}/cmd/{command}")).collect();
    let mut compile = go(staging, &around);
    compile.args(["build", "-trimpath", "-ldflags", &stamps(), "-o"]).arg(format!("{}/", target.display()));
    run(compile.args(packages)).map_err(step("compile")).map(drop)
}

/// Go in a folder, with caches of ours. Where modules come from, and who judges them, stays as the user has it.
fn go(staging: &Path, folder: &Path) -> Command {
    let mut go = Command::new("go");
    go.current_dir(folder)
        // Files of its cache that nobody may write to could not be removed.
        .env("GOFLAGS", "-mod=mod -buildvcs=false -modcacherw")
        .env("GOTOOLCHAIN", "local")
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .env("GOMODCACHE", staging.join("modules"))
        .env("GOCACHE", staging.join("objects"));
    go
}

fn check_version(staging: &Path) -> Result<(), GoError> {
    let said =
        run(go(staging, Path::new("/")).args(["env", "GOVERSION"])).map_err(|why| GoError::NoGo { why })?;
    let found = said.trim();
    if version_in(found).is_some_and(|version| version >= GO) {
        return Ok(());
    }
    Err(GoError::OldGo { found: found.to_owned() })
}

/// The first two numbers of `go1.26.8`.
fn version_in(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.strip_prefix("go")?.split('.').map(|number| {
        let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    });
    Some((numbers.next()??, numbers.next()??))
}

fn minutes(processors: usize) -> usize {
    (DOWNLOAD_SECONDS + BUILD_PROCESSOR_SECONDS / processors.max(1)).div_ceil(60)
}

/// The parts that a module replaces by folders of its repository.
fn parts(go_mod: &str) -> BTreeSet<String> {
    let named = go_mod.lines().filter_map(|line| line.split_once("=> ./staging/"));
    named.map(|(name, _)| name.trim().trim_start_matches("replace ").trim().to_owned()).collect()
}

/// The version of the parts: 0.35.4 of Kubernetes 1.35.4.
fn version_of_parts() -> String {
    format!("v0.{}", KUBERNETES.split_once('.').map_or(KUBERNETES, |(_, rest)| rest))
}

fn around_it(parts: &BTreeSet<String>) -> String {
    let version = version_of_parts();
    let replaced: String = parts.iter().map(|part| format!("\t{part} => {part} {version}\n")).collect();
    format!(
        "module {AROUND}\n\ngo {}.{}.0\n\nrequire {MODULE} v{KUBERNETES}\n\nreplace (\n{replaced})\n",
        GO.0, GO.1
    )
}

/// A file that is never compiled, from which Go knows what is needed.
fn imports() -> String {
    let imported: String = commands().map(|command| format!("\t_ \"{MODULE}/cmd/{command}\"\n")).collect();
    format!("//go:build tools\n\npackage around\n\nimport (\n{imported})\n")
}

/// What the programs say of themselves; API servers refuse kubelets of unknown version.
fn stamps() -> String {
    let place = "k8s.io/component-base/version";
    let mut numbers = KUBERNETES.split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    format!(
        "-s -w -X {place}.gitVersion=v{KUBERNETES} -X {place}.gitMajor={major} -X {place}.gitMinor={minor} \
         -X {place}.gitTreeState=archive"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_those_that_lie_in_the_repository() {
        let go_mod = "module k8s.io/kubernetes\n\nrequire (\n\tk8s.io/api v0.0.0\n\tx.example/y v1.0.0\n)\n\nreplace (\n\t\
                      k8s.io/api => ./staging/src/k8s.io/api\n\tx.example/y => x.example/z v1.1.0\n)\n\nreplace \
                      k8s.io/kubelet => ./staging/src/k8s.io/kubelet\n";
        let found = parts(go_mod);
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), ["k8s.io/api", "k8s.io/kubelet"]);
        assert_eq!(
            around_it(&found),
            "module holdfast.invalid/kubernetes\n\ngo 1.25.0\n\nrequire k8s.io/kubernetes v1.35.4\n\nreplace (\n\
             \tk8s.io/api => k8s.io/api v0.35.4\n\tk8s.io/kubelet => k8s.io/kubelet v0.35.4\n)\n"
        );
    }

    #[test]
    fn a_version_of_go_is_read_as_go_says_it() {
        assert_eq!(version_in("go1.26.8"), Some((1, 26)));
        assert_eq!(version_in("go1.25rc1"), Some((1, 25)));
        assert_eq!(version_in("devel go1.27"), None);
        assert!((1, 24) < GO && (1, 25) >= GO);
    }

    #[test]
    fn the_estimate_falls_with_the_processors() {
        assert_eq!((minutes(1), minutes(2), minutes(16), minutes(0)), (11, 6, 2, 11));
    }

    #[test]
    fn the_programs_say_which_version_they_are() {
        assert!(stamps().contains("version.gitVersion=v1.35.4 "));
        assert!(stamps().contains("version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35 "));
    }

    #[test]
    fn every_command_is_named_to_go() {
        let text = imports();
        assert!(text.starts_with("//go:build tools\n\npackage around\n"));
        assert_eq!(text.matches("\t_ \"k8s.io/kubernetes/cmd/").count(), 6);
    }
}
