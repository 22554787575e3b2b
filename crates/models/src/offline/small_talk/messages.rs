//! The messages that are small talk. Each text lists messages, in lower case, without punctuation, and separated by
//! `|`.

use super::Topic;

/// Messages that mean exactly one topic.
pub(super) const MESSAGES: &[(&str, Topic)] = &[
    (
        "thanks|thank you|thx|thanks a lot|thank you very much|many thanks|great|nice|cool|perfect|\
         awesome|wow|ok|okay|good|good job|well done|got it|i see|very good|ok thanks|\
         okay thanks|great thanks|cool thanks|nice thanks|\
         perfect thanks|ok thank you|great thank you|thank you so much|thanks so much|\
         thanks for your help|thank you for your help|thanks for the help|that's great|that is great|\
         wow cool|very nice|excellent|amazing|great job|good work|merci|merci beaucoup|danke|\
         danke schön|vielen dank|gracias|muchas gracias|grazie|obrigado|obrigada|tack",
        Topic::Thanks,
    ),
    (
        "yes|y|yeah|yep|yup|sure|of course|do it|go ahead|go on|continue|proceed|yes do it|\
         sounds good",
        Topic::Yes,
    ),
    ("no|n|nope|nah|no thanks|no thank you|not now", Topic::No),
    (
        "never mind|nevermind|forget it|forget that|forget this|forget about it|stop|cancel",
        Topic::NeverMind,
    ),
    (
        "exit|quit|q|leave|close|logout|log out|bye|bye bye|goodbye|good bye|see you|see you later|\
         good night|how do i exit|how do i quit|how do i leave|how do i get out|how do i exit this|\
         how do i close this|see you tomorrow|tschüss|adiós|adios|au revoir|arrivederci",
        Topic::Leave,
    ),
    (
        "who are you|what are you|who is this|what is this|what's this|what is lango|what's lango|\
         who is lango|tell me about yourself|introduce yourself|what is your name|what's your name|\
         are you an ai|are you a bot|are you a robot|are you human|are you real|are you chatgpt|\
         are you claude|are you a model|are you an ai model|which model are you|what model are you|\
         what model is this|which model is this|what model do you use|which model do you use",
        Topic::Identity,
    ),
    (
        "what can you do|what can you do for me|what do you do|what are you able to do|what can i do|\
         what can i do here|what can i ask|what can i ask you|what can i type|what can i say|\
         what should i type|what should i do|what should i try|what now|what next|help|help me|\
         i need help|can you help me|examples|show examples|show me examples|show me some examples|\
         give me an example|give me examples|commands|list commands|usage|menu|how does this work|\
         how do you work|how do i use this|how do i use you|how do i start|how do i use lango|\
         what are your features|demo|show me a demo|show me what you can do|list your abilities|\
         what are your capabilities|how does lango work|what else can you do|what tools are there|\
         which tools are there|what tools do you have|which tools do you have|list tools|\
         list the tools|list your tools|what commands are there|which commands are there|\
         what commands do you have|what are your rules|hilfe|was kannst du|ayuda|qué puedes hacer|\
         aide|aide moi|que peux tu faire|aiuto|ajuda",
        Topic::Abilities,
    ),
    (
        "which agents exist|which agents are there|which agents do you have|what agents exist|\
         what agents are there|what agents do you have|what agents are available|\
         which agents are available|which agents can you use|who are the agents|list agents|\
         list the agents|list all agents|list your agents|show agents|show the agents|\
         show me the agents|show me your agents|agents|who is on your team|who is in your team|\
         who's on your team|your team|team|what is your team|show me the team|show me your team|\
         how many agents are there|how many agents do you have|tell me about the agents|\
         what are the agents|what specialists are there",
        Topic::Agents,
    ),
    (
        "how are you|how are you doing|how are you today|how is it going|how's it going|what's up|\
         whats up|wie geht's|wie geht es dir|ça va|cómo estás|how do you do|are you there|are you ok",
        Topic::Mood,
    ),
    (
        "what date is it|what date is it today|what date is today|what is the date|\
         what is the date today|what's the date|what's the date today|what is today's date|\
         what's today's date|what day is it|what day is it today|what day is today|what is today|\
         today's date|date|what year is it|which day is it|tell me the date|what weekday is it|\
         what month is it",
        Topic::Date,
    ),
    (
        "what time is it|what time is it now|what is the time|what's the time|time|tell me the time|\
         do you know the time|do you know what time it is|current time|what is the current time",
        Topic::Time,
    ),
    (
        "is this free|is it free|are you free|is lango free|what does it cost|what does this cost|\
         what does lango cost|what do you cost|how much does it cost|how much does this cost|\
         does it cost anything|does this cost anything|do i have to pay",
        Topic::Cost,
    ),
    (
        "are my data sent anywhere|is my data sent anywhere|do you send my data anywhere|\
         does this send my data anywhere|where is my data sent|do you use the internet|\
         do you need the internet|does this work offline|do you work offline|are you offline",
        Topic::Privacy,
    ),
    (
        "where am i|where are we|pwd|what folder is this|which folder is this|what directory is this|\
         which directory is this|what is the current folder|what is the current directory|\
         what is the working directory|what is the working folder|which folder are you in|\
         what folder are you in|which folder am i in|what folder am i in|\
         what is my working directory",
        Topic::Folder,
    ),
    (
        "undo|undo that|undo it|undo this|undo the last change|undo the change|undo the last step|\
         revert|revert that|revert it|restore it|restore the file|get it back|bring it back|\
         how do i undo|how do i undo that|can i undo that|how do i restore a file|undelete|\
         undelete it|restore|take it back|take that back|take this back|can you undo that|\
         can you undo it|undo that change|undo your change|undo your last change|\
         undo my last change|undo last change|undo the last turn|undo everything|undo the edit|\
         revert the change|revert the last change|revert your change|revert the file",
        Topic::Undo,
    ),
    (
        "setup|set up|lango setup|run setup|run lango setup|execute lango setup|start setup|\
         start lango setup|open setup|settings|login|log in|sign in|models|list models|list the models|\
         show models|model|connect|configure|configure lango|set up lango|setup lango",
        Topic::Setup,
    ),
];

/// Greetings. Only ASCII letters are lowered before, so a Cyrillic one is listed in both cases.
pub(super) const GREETINGS: &str = "hello|hi|hey|howdy|greetings|good morning|good evening|good afternoon|good day|moin|hallo|\
    yo|guten tag|guten morgen|guten abend|servus|bonjour|bonsoir|salut|hola|buenos días|buenos dias|\
    ciao|buongiorno|olá|hej|hei|привет|Привет|你好|こんにちは";

/// How messages start that tell something about the user.
pub(super) const STATEMENTS: &str = "my name is|i am|i'm|i like|i love|i prefer|i live|i work|i use|my favourite|my favorite|\
    call me";

/// Words that show that the user wants a real model.
pub(super) const SETUP: &str = "api key|real model|real ai|another model|connect a model|use claude|use gpt|use openai|\
    use gemini|use anthropic|use ollama|ollama|change the model|change model|switch model|\
    switch the model|lango setup|set up a model|connect a real|connect to a model|connect model|\
    connect my model|connect the model|connect an ai|connect openai|connect anthropic|connect gemini|\
    connect claude|connect gpt|connect chatgpt|connect to openai|connect to anthropic|\
    connect to gemini|connect to claude|connect to chatgpt|set up openai|set up anthropic|\
    set up gemini|setup openai|setup anthropic|setup gemini|openai key|anthropic key|gemini key|\
    add a model|add my key|use chatgpt|use a real|configure a model";

/// Returns whether a list has this message.
pub(super) fn lists(messages: &str, message: &str) -> bool {
    messages.split('|').any(|other| other == message)
}
