"""The words of the synthetic Indian corpus: about 150 of each language, some of them the same thing in all four.

Months, days of the week, and names of languages, territories and units are those of the Unicode CLDR (as in the
package babel), most number words those of the package indic-num2words, given names those of the package Faker and
common ones besides; the everyday words are a list of basic vocabulary. Each language is written in its own script:
Latin, Devanagari, Tamil, Gujarati. All texts are NFC.
"""

LEXICON = {
    "en-IN": {
        "numbers": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
        "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety "
        "hundred thousand lakh crore",
        "months": "January February March April May June July August September October November December",
        "days": "Sunday Monday Tuesday Wednesday Thursday Friday Saturday",
        "languages": "Hindi Tamil Gujarati English Bangla Telugu Marathi Punjabi Urdu Sanskrit French German Russian "
        "Japanese Chinese Arabic",
        "territories": "India Pakistan Nepal Bhutan China Japan Russia France Germany Brazil Kenya Canada Iran Egypt Nigeria",
        "everyday": "water house day night hand eye sun moon road river tree flower bird fish dog cat cow horse bread "
        "milk rice salt sugar fruit mother father brother sister friend child book school work money "
        "market village city rain wind fire red white black green blue big small new old good",
        "units": "kilometers meters kilograms grams liters minutes",
        "names": "Aarav Aditya Akshay Anirudh Arjun Karan Gaurav Gopal Harish Rohan Siddharth Vikram Ananya "
        "Falguni Meera Radha",
    },
    "hi-IN": {
        "numbers": "शून्य एक दो तीन चार पाँच छह सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह सोलह सत्रह अठारह उन्नीस "
        "बीस तीस चालीस पचास साठ सत्तर अस्सी नब्बे सौ हज़ार लाख करोड़",
        "months": "जनवरी फ़रवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्तूबर नवंबर दिसंबर",
        "days": "रविवार सोमवार मंगलवार बुधवार गुरुवार शुक्रवार शनिवार",
        "languages": "हिन्दी तमिल गुजराती अंग्रेज़ी बंगाली तेलुगू मराठी पंजाबी उर्दू संस्कृत फ़्रेंच जर्मन रूसी जापानी चीनी अरबी",
        "territories": "भारत पाकिस्तान नेपाल भूटान श्रीलंका चीन जापान रूस फ़्रांस जर्मनी ब्राज़ील केन्या कनाडा ईरान मिस्र नाइजीरिया",
        "everyday": "पानी घर दिन रात हाथ आँख सूरज चाँद सड़क नदी पेड़ फूल चिड़िया मछली कुत्ता बिल्ली गाय घोड़ा रोटी "
        "दूध चावल नमक फल माँ पिता भाई बहन दोस्त बच्चा किताब स्कूल काम पैसा बाज़ार गाँव शहर बारिश हवा आग "
        "लाल सफ़ेद काला हरा नीला बड़ा छोटा नया पुराना अच्छा",
        "units": "किलोमीटर सेंटीमीटर मिलीमीटर किलोग्राम मिलीग्राम मिलीलीटर",
        "names": "अर्जुन अभय अमर अशोक गणेश मोहन मुकेश निखिल प्रदीप राजीव रोहन विक्रम विजय अदिती लता निशा",
    },
    "ta-IN": {
        "numbers": "பூஜ்ஜியம் ஒன்று இரண்டு மூன்று நான்கு ஐந்து ஆறு ஏழு எட்டு ஒன்பது பத்து பதினொன்று பன்னிரண்டு "
        "பதிமூன்று பதினான்கு பதினைந்து பதினாறு பதினேழு பதினெட்டு பத்தொன்பது இருபது முப்பது நாற்பது ஐம்பது "
        "அறுபது எழுபது எண்பது தொன்ணூறு நூறு ஆயிரம் இலட்சம் கோடி",
        "months": "ஜனவரி பிப்ரவரி மார்ச் ஏப்ரல் மே ஜூன் ஜூலை ஆகஸ்ட் செப்டம்பர் அக்டோபர் நவம்பர் டிசம்பர்",
        "days": "ஞாயிறு திங்கள் செவ்வாய் புதன் வியாழன் வெள்ளி சனி",
        "languages": "இந்தி தமிழ் குஜராத்தி ஆங்கிலம் வங்காளம் தெலுங்கு மராத்தி பஞ்சாபி உருது சமஸ்கிருதம் பிரெஞ்சு ஜெர்மன் ரஷியன் ஜப்பானியம் சீனம் அரபிக்",
        "territories": "இந்தியா பாகிஸ்தான் நேபாளம் பூடான் இலங்கை சீனா ஜப்பான் ரஷ்யா பிரான்ஸ் ஜெர்மனி பிரேசில் கென்யா கனடா ஈரான் எகிப்து நைஜீரியா",
        "everyday": "தண்ணீர் வீடு நாள் இரவு கை கண் சூரியன் நிலவு சாலை கடல் மரம் பூ பறவை மீன் நாய் பூனை பசு குதிரை "
        "ரொட்டி பால் அரிசி உப்பு சர்க்கரை பழம் அம்மா அப்பா அண்ணன் அக்கா நண்பன் குழந்தை புத்தகம் பள்ளி "
        "வேலை பணம் சந்தை கிராமம் நகரம் மழை காற்று நெருப்பு சிவப்பு வெள்ளை கருப்பு பச்சை நீலம் பெரிய சிறிய "
        "புதிய பழைய நல்ல",
        "units": "கிலோமீட்டர்கள் மீட்டர்கள் கிலோகிராம்கள் டன்கள் நிமிடங்கள் வாரங்கள்",
        "names": "அகிலன் ஆகாஷ் ஆதவன் உதயா எழிலரசன் கதிரவன் மணிகண்டன் ரமேஷ் ராஜதுரை வாசு இந்து எழிலரசி கண்ணம்மா நவீனா ரஞ்சினி வனிதா",
    },
    "gu-IN": {
        "numbers": "શૂન્ય એક બે ત્રણ ચાર પાંચ છ સાત આઠ નવ દસ અગિયાર બાર તેર ચૌદ પંદર સોળ સત્તર અઢાર ઓગણીસ વીસ ત્રીસ "
        "ચાલીસ પચાસ સાઈઠ સિત્તેર એંસી નેવું સો હજાર લાખ કરોડ",
        "months": "જાન્યુઆરી ફેબ્રુઆરી માર્ચ એપ્રિલ મે જૂન જુલાઈ ઑગસ્ટ સપ્ટેમ્બર ઑક્ટોબર નવેમ્બર ડિસેમ્બર",
        "days": "રવિવાર સોમવાર મંગળવાર બુધવાર ગુરુવાર શુક્રવાર શનિવાર",
        "languages": "હિન્દી તમિલ ગુજરાતી અંગ્રેજી બાંગ્લા તેલુગુ મરાઠી પંજાબી ઉર્દૂ સંસ્કૃત ફ્રેન્ચ જર્મન રશિયન જાપાનીઝ ચાઇનીઝ અરબી",
        "territories": "ભારત પાકિસ્તાન નેપાળ ભૂટાન શ્રીલંકા ચીન જાપાન રશિયા ફ્રાંસ જર્મની બ્રાઝિલ કેન્યા કેનેડા ઈરાન ઇજિપ્ત નાઇજેરિયા",
        "everyday": "પાણી ઘર દિવસ રાત હાથ આંખ સૂરજ ચંદ્ર રસ્તો નદી ઝાડ ફૂલ પક્ષી માછલી કૂતરો બિલાડી ગાય ઘોડો રોટલી "
        "દૂધ ચોખા મીઠું ખાંડ ફળ માતા પિતા ભાઈ બહેન મિત્ર બાળક પુસ્તક શાળા કામ પૈસા બજાર ગામ શહેર વરસાદ "
        "પવન આગ લાલ સફેદ કાળું લીલું વાદળી મોટું નાનું નવું જૂનું સારું",
        "units": "કિલોમીટર સેન્ટિમીટર મિલિમીટર કિલોગ્રામ મિલિગ્રામ સદીઓ",
        "names": "અમિત અર્જુન આરવ ગણેશ જયેશ દિનેશ ધવલ નરેશ પ્રકાશ ભાવેશ મહેશ રમેશ વિજય હિતેશ દક્ષા મીના",
    },
}


def words(language: str) -> list[str]:
    """The words of `language` ("en-IN", "hi-IN", "ta-IN" or "gu-IN"), each once, kind after kind."""
    found = [word for kind in LEXICON[language].values() for word in kind.split()]
    return list(dict.fromkeys(found))
