//! Keys in real files.

use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use tempfile::TempDir;

const URL: &str = "https://api.example.com/v1";

fn store(path: &Path, provider: &str, key: &str) -> Result<(), Failure> {
    let url = Url::parse(URL).unwrap();
    store_key(path, provider, &url, &SecretValue::new(key))
}

fn fixture() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data/credentials/keys.toml");
    (folder, path)
}

fn problem(path: &Path) -> String {
    let keys = StoredKeys::at(path.to_owned());
    assert!(keys.check().is_err() && keys.providers().is_empty());
    keys.problem().unwrap().text
}

#[tokio::test]
async fn a_stored_key_is_sent_only_to_its_own_origin() {
    let (_folder, path) = fixture();
    assert!(StoredKeys::at(path.clone()).providers().is_empty());
    store(&path, "mine", "sk-'\"\\-one").unwrap();
    store(&path, "other.one", "sk-other-key").unwrap();
    store(&path, "mine", "sk-'\"\\-two").unwrap();
    let keys = StoredKeys::at(path.clone());
    keys.check().unwrap();
    assert_eq!(keys.providers(), ["mine", "other.one"]);
    let masks = Masks::default();
    keys.mask(&masks);
    assert_eq!(
        masks.mask_text("a sk-other-key b"),
        "a [secret other.one] b"
    );
    let same_origin = "https://api.example.com:443/other/path";
    let key = keys.find("mine", same_origin, &masks).unwrap();
    let url = Url::parse(URL).unwrap();
    let text = key.bound_to(&url).text_for(&url).await.unwrap();
    assert_eq!(text.as_str(), "sk-'\"\\-two");
    for address in ["http://api.example.com/v1", "https://example.com/v1", "x"] {
        assert!(keys.find("mine", address, &masks).is_none(), "{address}");
    }
    assert!(keys.find("absent", URL, &masks).is_none());
}

#[tokio::test]
async fn a_replaced_or_removed_key_takes_effect_without_a_restart() {
    let (_folder, path) = fixture();
    let masks = Masks::default();
    let keys = StoredKeys::at(path.clone());
    assert!(keys.find("mine", URL, &masks).is_none());
    store(&path, "mine", "sk-first").unwrap();
    store(&path, "other", "sk-other").unwrap();
    let url = Url::parse(URL).unwrap();
    let key = keys.find("mine", URL, &masks).unwrap().bound_to(&url);
    assert_eq!(key.text_for(&url).await.unwrap().as_str(), "sk-first");
    store(&path, "mine", "sk-second").unwrap();
    assert_eq!(key.text_for(&url).await.unwrap().as_str(), "sk-second");
    assert_eq!(masks.mask_text("sk-second"), "[secret mine]");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let error = key.text_for(&url).await.unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    assert!(remove_key(&path, "mine").unwrap());
    assert!(!remove_key(&path, "mine").unwrap());
    let error = key.text_for(&url).await.unwrap_err().to_string();
    assert!(error.contains("lango setup --provider mine"), "{error}");
    assert_eq!(keys.providers(), ["other"]);
}

#[test]
fn a_file_that_others_can_read_or_replace_is_refused() {
    let (_folder, path) = fixture();
    store(&path, "mine", "sk-mine").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    let above = path.parent().unwrap();
    assert_eq!(fs::metadata(above).unwrap().mode() & 0o777, 0o700);
    let set =
        |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    set(&path, 0o640);
    assert_eq!(problem(&path), "other users can access it");
    let failure = StoredKeys::at(path.clone()).check().unwrap_err();
    let next = format!("next: run `chmod 600 {}`", path.display());
    assert!(failure.to_string().contains(&next), "{failure}");
    store(&path, "mine", "sk-mine").unwrap_err();
    set(&path, 0o600);
    set(above, 0o770);
    assert_eq!(problem(&path), "other users can access its folder");
}

#[test]
fn links_are_never_followed() {
    let (folder, path) = fixture();
    store(&path, "mine", "sk-mine").unwrap();
    let target = folder.path().join("target");
    fs::rename(&path, &target).unwrap();
    symlink(&target, &path).unwrap();
    let before = fs::read(&target).unwrap();
    assert_eq!(problem(&path), "it is a symbolic link");
    let failure = store(&path, "mine", "sk-new").unwrap_err().to_string();
    assert!(failure.contains("symbolic link"), "{failure}");
    assert_eq!(fs::read(&target).unwrap(), before);
    let above = path.parent().unwrap();
    fs::rename(above, folder.path().join("elsewhere")).unwrap();
    symlink(folder.path().join("elsewhere"), above).unwrap();
    assert!(problem(&path).contains("symbolic link"));
    store(&path, "mine", "sk-new").unwrap_err();
}

#[test]
fn a_damaged_file_is_described_without_its_content() {
    let (_folder, path) = fixture();
    store(&path, "mine", "sk-mine").unwrap();
    for (text, says) in [
        ("a = 1\n[mine\nkey = 'sk-secret'", "line 2"),
        ("mine = 'sk-secret'", "the entry `mine`"),
        ("[mine]\naddress = 'https://h'\nkey = 'sk secret'", "`mine`"),
    ] {
        fs::write(&path, text).unwrap();
        let problem = problem(&path);
        assert!(
            problem.contains(says) && !problem.contains("secret"),
            "{problem}"
        );
    }
}

#[test]
fn a_key_is_trimmed_and_has_only_visible_characters() {
    let checked = |text: &str| {
        let key = check_key(&SecretValue::new(text));
        key.map(|key| key.expose_text().unwrap().to_owned())
    };
    assert_eq!(checked("  sk-abc\r\n").unwrap(), "sk-abc");
    for text in [
        "",
        " \n",
        "sk abc",
        "sk\u{1b}[200~abc",
        "sk-é",
        &"x".repeat(8193),
    ] {
        let failure = checked(text).unwrap_err().to_string();
        assert!(!failure.contains("abc"), "{failure}");
    }
}
