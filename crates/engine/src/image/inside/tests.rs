//! What an image names, and where it lies.

use super::*;

fn root() -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().expect("a folder");
    let root = Root::make(folder.path().join("root")).expect("a root");
    (folder, root)
}

fn write(root: &Root, path: &str, content: &str) -> Result<(), String> {
    let written = root.write(Path::new(path), 0o4777, SystemTime::UNIX_EPOCH, &mut content.as_bytes());
    written.map_err(|error| error.to_string())
}

fn link(root: &Root, path: &str, target: &str) {
    root.link(Path::new(path), Path::new(target)).expect("a link");
}

#[test]
fn a_path_that_climbs_out_is_refused_and_an_absolute_one_begins_at_the_image() {
    let (folder, root) = root();
    for path in ["../x", "a/../../x", "a/.."] {
        let told = format!("the image names `{path}`, which leads out of it");
        assert_eq!(write(&root, path, ""), Err(told));
    }
    write(&root, "/etc/x", "1").expect("written");
    assert_eq!(fs::read_to_string(folder.path().join("root/etc/x")).expect("there"), "1");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn a_file_written_through_a_link_that_leads_out_lands_in_the_image() {
    let (folder, root) = root();
    let outside = folder.path().join("outside");
    fs::create_dir(&outside).expect("a folder");
    link(&root, "up", "../..");
    link(&root, "there", &outside.display().to_string());
    link(&root, "deep/by/steps", "../../../../outside");
    for path in ["up/outside/1", "there/2", "deep/by/steps/3"] {
        write(&root, path, "").expect("written");
    }
    assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 0);
    assert!(folder.path().join("root/outside/1").is_file(), "nothing is above the root");
    assert!(folder.path().join("root/outside/3").is_file());
    let there = folder.path().join("root").join(outside.strip_prefix("/").expect("absolute")).join("2");
    assert!(there.is_file());
}

#[test]
fn links_lead_to_the_same_wherever_the_image_lies() {
    for (folder, target, text) in [
        ("usr/lib", "x.so.1", "x.so.1"),
        ("usr/lib", "../../etc/x", "../../etc/x"),
        ("usr/bin", "/etc/alternatives/java", "../../etc/alternatives/java"),
        ("usr", "../../../etc/x", "../etc/x"),
        ("usr", "x/../../../y", "../y"),
        ("", "/", "."),
        ("", "/usr/bin", "usr/bin"),
        ("a/b", "/", "../.."),
        ("a/b", "./../c", "../../a/c"),
    ] {
        assert_eq!(text_of_link(Path::new(folder), Path::new(target)), Path::new(text), "{target}");
    }
}

#[test]
fn a_second_name_of_a_link_leads_where_the_first_does() {
    let (folder, root) = root();
    write(&root, "etc/x", "1").expect("written");
    link(&root, "a/b/c", "../../etc/x");
    root.name_again(Path::new("d"), Path::new("a/b/c")).expect("a second name");
    assert_eq!(fs::read_link(folder.path().join("root/d")).expect("a link"), Path::new("etc/x"));
    root.name_again(Path::new("etc/y"), Path::new("/etc/x")).expect("a second name");
    root.name_again(Path::new("etc/y"), Path::new("etc/y")).expect("the same name");
    assert_eq!(fs::read_to_string(folder.path().join("root/etc/y")).expect("there"), "1");
    let nothing = root.name_again(Path::new("z"), Path::new("none")).expect_err("nothing").to_string();
    assert_eq!(nothing, "the image makes `z` a second name of `none`, which is not there");
}

#[test]
fn what_is_put_where_something_is_replaces_it_and_links_are_not_written_through() {
    let (folder, root) = root();
    write(&root, "etc/x", "1").expect("written");
    link(&root, "y", "etc/x");
    write(&root, "y", "2").expect("written");
    write(&root, "etc", "3").expect("a file instead of a folder");
    assert_eq!(fs::read_to_string(folder.path().join("root/y")).expect("there"), "2");
    root.make_folder(Path::new("y")).expect("a folder instead of a file");
    assert!(folder.path().join("root/y").is_dir() && folder.path().join("root/etc").is_file());
}

#[test]
fn no_file_runs_as_another_user_or_can_be_written_by_others() {
    let (folder, root) = root();
    write(&root, "x", "").expect("written");
    let mode = fs::metadata(folder.path().join("root/x")).expect("there").permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
}

#[test]
fn links_that_lead_to_each_other_are_found_out() {
    let (_folder, root) = root();
    link(&root, "a", "b");
    link(&root, "b", "a");
    let told = "the image names `a/x`, whose links lead round in a circle".to_owned();
    assert_eq!(write(&root, "a/x", ""), Err(told));
}

#[test]
fn an_image_with_nothing_in_it_becomes_one_with_the_places_of_a_system() {
    let (folder, root) = root();
    write(&root, "etc/passwd", "kept").expect("written");
    root.complete(Path::new("/opt/thing")).expect("completed");
    let at = |path: &str| folder.path().join("root").join(path);
    assert!(at("proc").is_dir() && at("opt/thing").is_dir() && at("etc/hosts").is_file());
    assert_eq!(fs::read_to_string(at("etc/passwd")).expect("there"), "kept");
}

#[test]
fn a_file_for_which_there_is_no_room_is_not_begun() {
    let (_folder, root) = root();
    assert!(root.require_room_for(0).is_ok());
    let told = root.require_room_for(u64::MAX).expect_err("no disk is that large");
    assert!(matches!(told, ImageError::NoRoom { needed_bytes: u64::MAX, .. }), "{told:?}");
}
