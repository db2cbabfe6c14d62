//! Images among the ways to an engine's programs.
//!
//! Owns which image of the cache directory is still the one that the file names, and what a program of one is run
//! with to say its version. Fetching and unpacking is `image`'s; what nodes see of one is the lab's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use capabilities::file::{EngineFile, ImageSource, Way};

use crate::Installation;
use crate::image::{Source, Unpacked};

/// Variables that a program may have when it says its version.
const HARMLESS: [&str; 2] = ["PATH", "HOME"];
/// What the names of others end with: where a program or a language lies.
const OF_A_PLACE: &str = "_HOME";

/// The folder at which the paths in a file begin.
pub(super) fn folder_of(file: &EngineFile) -> &Path {
    Path::new(&file.source).parent().unwrap_or(Path::new(""))
}

/// Whether what lies in a folder of the cache directory may serve: an image that the file names no longer may not,
/// whatever its version.
pub(super) fn may_serve(tree: &Path, file: &EngineFile) -> bool {
    let image = |way: &Way| match way {
        Way::Image { source, .. } => Some(Source::of(source, folder_of(file))),
        _ => None,
    };
    let Some(there) = Unpacked::in_tree(tree) else { return true };
    let named: Vec<Source> = file.install.iter().filter_map(image).collect();
    there.is_of(&named)
}

/// What an image's folder in the cache directory ends with. Each has its own: one that a lab runs on is not replaced.
pub(super) fn name_of_way(image: &ImageSource, file: &EngineFile) -> String {
    format!("image-{}", Source::of(image, folder_of(file)).short())
}

/// An installation as its programs see it where their image is the whole system.
pub(super) fn seen_inside(installation: &Installation) -> Installation {
    let seen = |path: &Path| match path.strip_prefix(&installation.root) {
        Ok(inside) => Path::new("/").join(inside),
        Err(_) => path.to_owned(),
    };
    let programs = installation.programs.iter();
    Installation {
        bin: seen(&installation.bin),
        root: PathBuf::from("/"),
        programs: programs.map(|(name, path)| (name.clone(), seen(path))).collect(),
        ..installation.clone()
    }
}

/// What a program of an image has of this environment when it says its version. The programs that enclose it have it
/// too, and run outside of the image: by many variables, such as those of the loader, code would get into them.
pub(super) fn environment_of_version<'a>(
    variables: impl Iterator<Item = (&'a String, &'a String)>,
) -> BTreeMap<String, String> {
    let is_harmless = |name: &str| HARMLESS.contains(&name) || name.ends_with(OF_A_PLACE);
    variables
        .filter(|(name, _)| is_harmless(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::find;
    use super::*;
    use crate::image::made::{self, Made, described};
    use crate::{InstallError, Origin};

    /// An engine file whose programs are a jar of an image beside it, read as if it lay in that folder.
    fn file_in(folder: &Path) -> &'static EngineFile {
        let text = include_str!("../../../../engines/rejected/image-without-tag.yaml")
            .replace("version: { command: [my-server, --version] }", "version: { file: [my-database-*.jar] }")
            .replace("image: my-server", "image: ./image");
        let name = folder.join("my-database.yaml").display().to_string();
        let engine = capabilities::file::read(&name, &text).unwrap_or_else(|error| panic!("{error}"));
        engine.file.expect("an engine by file")
    }

    /// Writes an image that has the programs of this version.
    fn image(folder: &Path, version: &str) {
        let jar = format!("opt/my/bin/my-database-{version}.jar");
        let layer = made::tar(&[
            Made::file("opt/my/bin/my-server", ""),
            Made::file("opt/my/bin/my-shell", ""),
            Made::file(&jar, ""),
            made::link("opt/thing/bin", "/opt/my/bin"),
        ]);
        let parts = made::image(&[layer]);
        made::layout(&folder.join("image"), &parts, &[described(&parts.manifest)]);
    }

    fn installed(file: &EngineFile, cache: &Path) -> Result<Installation, InstallError> {
        find::install_into(file, None, cache, &mut |_| {})
    }

    #[test]
    fn an_engine_is_installed_from_an_image_beside_its_file_and_runs_in_the_image_s_system() {
        let (folder, cache) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        image(folder.path(), "2.1.0");
        let file = file_in(folder.path());
        let found = installed(file, cache.path()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((found.version.as_str(), found.origin), ("2.1.0", Origin::Installed));
        let at =
            found.root.parent().and_then(Path::file_name).expect("a name").to_string_lossy().into_owned();
        assert!(at.starts_with("my-database-2.1.0-") && at.contains("-image-"), "{at}");
        let inside = seen_inside(&found);
        assert_eq!(inside.programs["my-shell"], Path::new("/opt/my/bin/my-shell"));
        let system = found.system.expect("a system of its own");
        assert_eq!(system.folder, Path::new("/opt/thing"));
        assert_eq!(system.environment["THING_HOME"], "/opt/thing");
        let again = installed(file, cache.path()).expect("there");
        assert_eq!((again.origin, again.root), (Origin::Cache, found.root));
    }

    #[test]
    fn an_image_that_has_changed_is_unpacked_beside_the_earlier_one() {
        let (folder, cache) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        image(folder.path(), "2.2.0");
        let file = file_in(folder.path());
        let earlier = installed(file, cache.path()).unwrap_or_else(|error| panic!("{error}"));
        image(folder.path(), "2.1.10");
        let later = installed(file, cache.path()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(later.version, "2.1.10", "whichever is newer");
        assert!(earlier.root.is_dir(), "a lab may run on it");
    }

    #[test]
    fn an_image_without_the_programs_is_told_with_the_way_to_it() {
        let (folder, cache) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let parts = made::image(&[made::tar(&[Made::file("usr/bin/other", "")])]);
        made::layout(&folder.path().join("image"), &parts, &[described(&parts.manifest)]);
        let told = installed(file_in(folder.path()), cache.path()).expect_err("no programs").to_string();
        assert!(told.contains("\n  with image-"), "{told}");
        assert!(told.contains(": the download contains no server\n"), "{told}");
        assert_eq!(fs::read_dir(cache.path()).expect("a folder").count(), 1, "the lock alone");
    }

    #[test]
    fn an_image_brings_no_code_into_what_encloses_it() {
        let of = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let dangerous =
            ["LD_PRELOAD", "LD_LIBRARY_PATH", "GCONV_PATH", "GLIBC_TUNABLES", "BASH_FUNC_exec%%", "PS4"];
        let mut variables: BTreeMap<String, String> = dangerous.map(|name| of((name, "/x"))).into();
        let harmless = BTreeMap::from([("PATH", "/bin"), ("JAVA_HOME", "/opt/java")].map(of));
        variables.extend(harmless.clone());
        assert_eq!(environment_of_version(variables.iter()), harmless);
    }
}
