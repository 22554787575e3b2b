use lango_core::*; use lango_store::SqliteStore; use lango_testkit::session_store_contract::Sketch; use std::time::Instant;
fn cpu() -> (f64,f64) { let s=std::fs::read_to_string("/proc/self/stat").unwrap(); let f:Vec<&str>=s.rsplit(')').next().unwrap().split_whitespace().collect(); (f[11].parse::<f64>().unwrap()*10.0,f[12].parse::<f64>().unwrap()*10.0) }
fn rss()->String{std::fs::read_to_string("/proc/self/status").unwrap().lines().filter(|l|l.starts_with("VmRSS")||l.starts_with("VmHWM")).collect::<Vec<_>>().join(" ")}
#[tokio::main(flavor="current_thread")]
async fn main(){
 let path=std::env::args().nth(1).unwrap(); let n:usize=std::env::args().nth(2).unwrap().parse().unwrap();
 println!("start {}",rss());
 let t=Instant::now(); let store=SqliteStore::open(&path,"root".into()).unwrap(); println!("open {:?} {}",t.elapsed(),rss());
 let id=SessionId::new(format!("s_{}",std::process::id()));
 let t=Instant::now(); store.create(NewSession{id:id.clone(),user:"local".into(),created:Timestamp(1)}).await.unwrap(); println!("create {:?}",t.elapsed());
 let mut sk=Sketch::of(&id);
 let t=Instant::now(); let c=cpu(); let mut max=std::time::Duration::ZERO;
 for _ in 0..n { let tt=Instant::now(); let h=SessionStore::open(&store,&id).await.unwrap(); assert!(h.exchanges.len()<40);
  sk=sk.ask("please read the file a.txt and tell me what is in there"); store.append(sk.batch()).await.unwrap();
  sk=sk.say("root","","").delegate("c_1","operator","read the file a.txt and say what it contains",true); store.append(sk.batch()).await.unwrap();
  sk=sk.say("operator","c_1","").add("operator","c_1",EventBody::ToolCalled{call:"c_2".into(),tool:"fs_read".into(),arguments:std::sync::Arc::new(serde_json::json!({"path":"a.txt"})),effect:Effect::Pure}); store.append(sk.batch()).await.unwrap();
  sk=sk.add("operator","c_1",EventBody::ToolReturned{call:"c_2".into(),status:CallStatus::Ok,output:"x".repeat(300).into()}); store.append(sk.batch()).await.unwrap();
  sk=sk.say("operator","c_1","the file says many things about many files and more").finish(); store.append(sk.batch()).await.unwrap();
  max=max.max(tt.elapsed());
 }
 let d=cpu(); println!("per turn wall {:?} max {:?} cpu user {:.0}us sys {:.0}us  {}",t.elapsed()/n as u32,max,(d.0-c.0)*1000.0/n as f64,(d.1-c.1)*1000.0/n as f64,rss());
 let c=cpu(); for _ in 0..n { SessionStore::open(&store,&id).await.unwrap(); } let d=cpu(); println!("open() alone user {:.0} sys {:.0} us",(d.0-c.0)*1000.0/n as f64,(d.1-c.1)*1000.0/n as f64);
 let t=Instant::now(); drop(store); println!("close {:?}",t.elapsed());
}
