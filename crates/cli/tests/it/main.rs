//! x
#[test] fn probe() {
    use toml::de::DeTable;
    for s in ["a = 1\na = 2\nb = = 3\n", "a = \nb = [1,\nc=2", "[x\ny=1", "k = \"abc\nz=1", "\u{feff}a=1"] {
        let (t, e) = DeTable::parse_recoverable(s);
        println!("{s:?} -> {:?}", t.get_ref());
        for e in e { println!("   {:?} {:?}", e.message(), e.span()); }
    }
    println!("{} {} {}", toml::Value::String("a\nb".into()), toml::Value::String("a\"b\u{1b}\u{9b}".into()), toml::Value::String("it's".into()));
    for s in ["15m","true","offline/rules","30s","", " 5 ","5 # x","\"a\" b", "1_000", "0x10", "99999999999999999999", "a = 5"] { println!("{s:?} {:?}", toml::de::DeValue::parse(s).map(|v| v.into_inner()).map_err(|e| e.message().to_string())); }
    let deep = format!("{}a = 1", "a.".repeat(200));
    println!("{:?}", DeTable::parse(&deep).map(|_| ()).map_err(|e| e.message().to_string()));
    let deep = format!("{}a = 1", "a.".repeat(500_000));
    println!("{:?}", DeTable::parse(&deep).map(|_| ()).map_err(|e| e.message().to_string()));
}
