//! Jars of Maven Central, downloaded by curl into a folder, without root.
//!
//! Owns their addresses and the test of their checksums, which the engines name. There is no resolution of dependencies: who
//! writes an engine names each jar, so that what runs is what was tested.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use capabilities::file::Jar;

use crate::checksum::Checksum;
use crate::image::quoted;
use crate::run_to_end::run;

/// Where Maven Central is.
const CENTRAL: &str = "https://repo.maven.apache.org/maven2";
/// The folder of the jars in what is installed.
pub(crate) const LIBRARY: &str = "lib";

/// Downloads the jars and holds each against its checksum; the tree that they lie in.
pub(crate) fn with_maven(
    jars: &[Jar],
    megabytes: Option<u32>,
    staging: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, String> {
    let tree = staging.join("tree");
    let library = tree.join(LIBRARY);
    let at = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    fs::create_dir_all(&library).map_err(|error| at(&library, &error))?;
    let size = megabytes.map(|megabytes| format!(", {megabytes} MB")).unwrap_or_default();
    progress(&format!("downloading {} jars from Maven Central with curl{size}", jars.len()));
    let list = staging.join("curl.conf");
    fs::write(&list, configuration(jars, &library)).map_err(|error| at(&list, &error))?;
    // -q comes first: a user's own configuration could send the jars elsewhere.
    run(Command::new("curl").arg("-q").arg("--config").arg(&list).current_dir(staging))?;
    for jar in jars {
        let path = library.join(file_name(jar));
        let found = File::open(&path).and_then(Checksum::of).map_err(|error| at(&path, &error))?;
        if found.digits() != jar.sha256 {
            return Err(format!(
                "{} has the SHA-256 {}, but the engine's file expects {}: it is not the tested jar",
                file_name(jar),
                found.digits(),
                jar.sha256
            ));
        }
    }
    Ok(tree)
}

fn file_name(jar: &Jar) -> String {
    let classifier = jar.classifier.iter().map(|classifier| format!("-{classifier}")).collect::<String>();
    format!("{}-{}{classifier}.jar", jar.artifact, jar.version)
}

fn address(jar: &Jar) -> String {
    let group = jar.group.replace('.', "/");
    format!("{CENTRAL}/{group}/{}/{}/{}", jar.artifact, jar.version, file_name(jar))
}

/// What curl is told: each address and where it goes.
fn configuration(jars: &[Jar], library: &Path) -> String {
    let mut text = "fail\nsilent\nshow-error\nlocation\nproto = \"=https\"\nparallel\nparallel-max = 6\nconnect-timeout = 20\n\
                    speed-limit = 100\nspeed-time = 30\nretry = 2\n"
        .to_owned();
    for jar in jars {
        let path = library.join(file_name(jar));
        let path = quoted(&path.display().to_string());
        let _ = writeln!(text, "url = \"{}\"\noutput = {path}", address(jar));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jar(classifier: Option<&str>) -> Jar {
        Jar {
            group: "org.example.db".to_owned(),
            artifact: "db-all".to_owned(),
            version: "1.2".to_owned(),
            classifier: classifier.map(str::to_owned),
            sha256: String::new(),
        }
    }

    #[test]
    fn a_jar_s_address_has_its_group_as_folders_and_its_classifier_last() {
        let plain = format!("{CENTRAL}/org/example/db/db-all/1.2/db-all-1.2.jar");
        assert_eq!(address(&jar(None)), plain);
        assert_eq!(file_name(&jar(Some("linux-x86_64"))), "db-all-1.2-linux-x86_64.jar");
        let told = configuration(&[jar(None)], Path::new("/a \"b\"/lib"));
        let lines = format!("url = \"{plain}\"\noutput = \"/a \\\"b\\\"/lib/db-all-1.2.jar\"\n");
        assert!(told.ends_with(&lines), "{told}");
    }
}
