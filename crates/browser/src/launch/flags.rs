//! The command-line flags of a browser: no window, no debugging port, no background requests to its vendor, and no way
//! around the proxy. The network namespace blocks whatever the flags miss.

use std::ffi::OsString;
use std::path::Path;

/// Features to disable: those that contact the vendor, and those that are useless here.
const FEATURES_OFF: [&str; 14] = [
    "AutofillServerCommunication",
    // A page restored from this cache sends no load event.
    "BackForwardCache",
    "CertificateTransparencyComponentUpdater",
    "DialMediaRouteProvider",
    "DnsOverHttps",
    "GlobalMediaControls",
    "HttpsUpgrades",
    "InterestFeedContentSuggestions",
    "InterestFeedV2",
    "MediaRouter",
    "OptimizationHints",
    "OptimizationGuideModelDownloading",
    "SegmentationPlatform",
    "Translate",
];

const FLAGS: [&str; 34] = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-startup-window",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--no-service-autorun",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-field-trial-config",
    "--disable-gpu",
    "--disable-quic",
    "--disable-search-engine-choice-screen",
    "--disable-sync",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
    "--lang=en-US",
    "--window-size=1280,800",
    // The proxy for the browser's own requests. Nothing listens there, so they fail; pages have their own proxies.
    "--proxy-server=http://127.0.0.1:1",
    "--proxy-bypass-list=<-loopback>",
];

/// Whether Chromium's sandbox runs inside lango's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChromiumSandbox {
    On,
    /// Chromium's sandbox cannot start here, so only lango's sandbox confines the pages.
    Off,
}

pub(super) fn flags(profile: &Path, chromium_sandbox: ChromiumSandbox) -> Vec<OsString> {
    let mut flags: Vec<OsString> = FLAGS.iter().map(OsString::from).collect();
    if chromium_sandbox == ChromiumSandbox::Off {
        flags.push("--no-sandbox".into());
    }
    flags.push(format!("--disable-features={}", FEATURES_OFF.join(",")).into());
    let mut directory = OsString::from("--user-data-dir=");
    directory.push(profile);
    flags.push(directory);
    flags
}

/// Returns the environment variables: the folders of desktop programs point to the private directory, and the D-Bus
/// session bus is disabled.
pub(super) fn environment(private: &Path) -> Vec<(OsString, OsString)> {
    let folder = private.as_os_str();
    let mut variables: Vec<(OsString, OsString)> = ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"]
        .into_iter()
        .map(|name| (name.into(), folder.into()))
        .collect();
    variables.push(("DBUS_SESSION_BUS_ADDRESS".into(), "disabled:".into()));
    variables
}
