"""Stop words by language.

They are articles, pronouns, auxiliaries, prepositions, conjunctions and common adverbs.

Contractions are cut at the apostrophe, and lists have the pieces. A list never changes: signatures
depend on it.
"""

from __future__ import annotations

ENGLISH = frozenset(
    """
    a an the this that these those such same other another each every either neither both all any
    some no none few many much more most less least several own
    i me my mine myself we us our ours ourselves you your yours yourself yourselves
    he him his himself she her hers herself it its itself they them their theirs themselves
    one ones who whom whose which what whatever whoever
    be am is are was were been being do does did doing done have has had having
    will would shall should can could may might must ought need dare cannot
    about above across after against along amid among around as at before behind below beneath
    beside besides between beyond by despite down during except for from in inside into like near of
    off on onto out outside over per since than through throughout till to toward towards under
    underneath until up upon via versus with within without
    and but or nor so yet if unless because although though while whereas whether once
    again also already always almost even ever far further hence here how however indeed instead
    just maybe moreover never nevertheless not now often only otherwise perhaps quite rather really
    seldom sometimes somewhat soon still then there thereby therefore therein thus together too very
    well when whenever where whereby wherein wherever why
    don doesn didn isn aren wasn weren won wouldn shan shouldn couldn mustn hasn haven hadn
    d ll m re s t ve
    """.split()
)

GERMAN = frozenset(
    """
    der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner keines
    dieser diese dieses diesen diesem jener jene jenes jenen jenem jeder jede jedes jeden jedem
    alle alles allen aller allem einige einigen einiger mehrere viele vielen vieler viel mehr meist
    wenig wenige weniger beide beiden manche mancher manchen solche solcher solchen selbe anderer
    andere anderen anderer anderes anderem derselbe dieselbe dasselbe
    ich du er sie es wir ihr mich dich ihn uns euch mir dir ihm ihnen ihrer sich mein meine meinen
    meinem meiner meines dein deine deinen deinem deiner sein seine seinen seinem seiner seines ihre
    ihren ihrem ihres unser unsere unseren unserem unserer euer eure man jemand niemand etwas nichts
    wer wen wem wessen was welche welcher welches welchen welchem
    bin bist ist sind seid war warst waren wart gewesen wäre wären sei seien habe hast hat haben
    habt
    hatte hatten hätte hätten gehabt werde wirst wird werden werdet wurde wurden würde würden worden
    geworden kann kannst können könnt konnte konnten könnte könnten muss muß müssen musste mussten
    müsste soll sollen sollte sollten will willst wollen wollte wollten darf dürfen durfte mag mögen
    möchte lässt lassen
    in im ins an am ans auf aus bei beim bis durch für gegen hinter mit nach neben ohne seit statt
    trotz über um unter von vom vor während wegen zu zum zur zwischen ab außer gemäß pro per
    und oder aber denn sondern sowie sowohl weder noch entweder dass daß weil wenn als ob obwohl
    damit bevor nachdem indem falls sobald solange wie so
    auch nur schon noch nicht nie immer wieder sehr mal hier da dort dann nun jetzt heute also doch
    ja nein wo wohin woher wann warum wozu dabei dadurch dafür dagegen daher dahin danach daran
    darauf daraus darin darüber darum davon dazu hierbei hierfür jedoch bereits zwar etwa fast ganz
    gar eben einfach einmal zusammen allerdings außerdem ebenfalls ebenso beispielsweise bzw usw
    sonst somit dennoch trotzdem deshalb deswegen bisher überhaupt vielleicht sogar jeweils
    """.split()
)

FRENCH = frozenset(
    """
    le la les l un une des du de d au aux ce cet cette ces celui celle ceux celles ci cela ça ceci
    tout toute tous toutes chaque quelque quelques plusieurs aucun aucune autre autres même mêmes
    tel telle tels telles certain certaine certains certaines divers peu beaucoup plus moins trop
    je j tu il elle on nous vous ils elles me m te t se s moi toi soi lui leur leurs eux y en
    mon ma mes ton ta tes son sa ses notre nos votre vos qui que qu quoi dont où lequel laquelle
    lesquels lesquelles auquel duquel quel quelle quels quelles rien personne
    être suis es est sommes êtes sont étais était étaient été étant sera seront serait seraient soit
    soient fut furent ai as a avons avez ont avais avait avaient eu ayant aura auront aurait aient
    ait fait faire font faites peut peuvent pouvoir pouvez pourrait pourront doit doivent devez
    devrait va vont veut veulent voulez
    à dans par pour sur sous avec sans vers chez entre depuis pendant avant après contre selon lors
    durant malgré parmi hors dès jusque jusqu afin envers
    et ou mais donc or ni car si comme lorsque lorsqu quand puisque puisqu parce quoique tandis
    ne n pas non oui très aussi encore toujours jamais déjà ici là alors ainsi puis ensuite enfin
    bien mal mieux seulement notamment également cependant toutefois néanmoins sinon surtout
    maintenant souvent parfois plutôt presque assez c voici voilà deux
    """.split()
)

SPANISH = frozenset(
    """
    el la los las lo un una unos unas al del este esta estos estas ese esa esos esas eso esto aquel
    aquella aquellos aquellas aquello todo toda todos todas cada algún alguna algunos algunas alguno
    ningún ninguna ninguno otro otra otros otras mismo misma mismos mismas tal tales varios varias
    mucho mucha muchos muchas poco poca pocos pocas más menos tanto tanta tantos tantas cualquier
    demasiado ambos ambas
    yo tú él ella ello nosotros vosotros ellos ellas usted ustedes me te se nos os le les mi mis tu
    tus su sus nuestro nuestra nuestros nuestras suyo suya mí ti sí algo nada nadie alguien
    que qué quien quién quienes cual cuál cuales cuyo cuya cuyos cuyas donde dónde cuando cuándo
    como
    cómo cuanto cuánto
    ser soy eres es somos son era eran fue fueron sido siendo será serán sería sea sean estar estoy
    está están estaba estaban estado esté haber he has ha hemos han había habían hay haya habrá
    habría hace hacer hacen hecho tener tengo tiene tienen tenía tenga puede pueden poder podría
    podrá puedes pueda debe deben deber debería va van quiere
    a ante bajo con contra de desde durante en entre hacia hasta mediante para por según sin sobre
    tras y e o u pero sino ni porque pues aunque si mientras
    no ya muy también tampoco aún aun siempre nunca jamás sólo solo solamente así entonces luego
    después antes ahora aquí ahí allí hoy bien mal casi quizá además incluso embargo vez veces dos
    """.split()
)

ITALIAN = frozenset(
    """
    il lo la i gli le l un uno una al allo alla ai agli alle all del dello della dei degli delle
    dell dal dallo dalla dai dagli dalle dall nel nello nella nei negli nelle nell sul sullo sulla
    sui sugli sulle sull col coi questo questa questi queste quest quello quella quelli quelle quel
    quei quegli ogni ciascuno tutto tutta tutti tutte alcuno alcuna alcuni alcune nessuno nessuna
    altro altra altri altre stesso stessa stessi stesse tale tali vari varie molto molta molti molte
    poco pochi più meno tanto qualche qualsiasi qualunque entrambi
    io tu egli lui lei noi voi loro essi esse mi ti ci vi si ne me te se sé mio mia miei mie tuo tua
    tuoi suo sua suoi sue nostro nostra nostri nostre vostro chi che cui quale quali qual cosa
    niente
    nulla qualcosa
    essere sono sei è siamo siete era erano fu furono stato stata stati state essendo sarà saranno
    sarebbe sia siano ho hai ha abbiamo avete hanno aveva avevano avere avuto abbia fare fa fanno
    fatto può possono potrebbe poter potere deve devono dovrebbe dover viene vengono venga vuole
    di a da in con su per tra fra contro durante secondo senza sotto sopra verso presso dopo prima
    oltre mediante tramite
    e ed o od ma però né anche se perché poiché mentre quando come dove quindi dunque cioè infatti
    non sì già ancora sempre mai solo soltanto così allora poi ora qui là lì oggi bene male quasi
    inoltre invece oppure pure ad proprio c d s dal due
    """.split()
)

PORTUGUESE = frozenset(
    """
    o a os as um uma uns umas ao aos à às do da dos das no na nos nas num numa pelo pela pelos pelas
    este esta estes estas esse essa esses essas isso isto aquele aquela aqueles aquelas aquilo deste
    desta neste nesta desse dessa nesse nessa todo toda todos todas cada algum alguma alguns algumas
    nenhum nenhuma outro outra outros outras mesmo mesma mesmos mesmas tal tais vários várias muito
    muita muitos muitas pouco poucos mais menos tanto tantos qualquer quaisquer ambos
    eu tu ele ela nós vós eles elas você vocês me te se lhe lhes nos vos meu minha meus minhas teu
    tua seu sua seus suas nosso nossa nossos nossas mim ti si algo nada ninguém alguém
    que quem qual quais cujo cuja cujos cujas onde quando como quanto
    ser sou és é somos são era eram foi foram sido sendo será serão seria seja sejam estar estou
    está
    estão estava estavam esteja ter tenho tem têm tinha tinham tido tenha haver há havia fazer faz
    fazem feito pode podem poder poderia deve devem deveria vai vão
    ante até com contra de desde durante em entre para per perante por sem sob sobre após
    e ou mas porém nem porque pois embora se enquanto
    não já muito também ainda sempre nunca só somente apenas assim então depois antes agora aqui ali
    lá hoje bem mal quase talvez além inclusive vez vezes dois
    """.split()
)

DUTCH = frozenset(
    """
    de het een der den des deze dit die dat elk elke ieder iedere alle alles al sommige enkele
    enige ander andere anderen zelfde hetzelfde dezelfde veel vele meer meest minder weinig geen
    beide zulke
    ik jij je u hij zij ze wij we jullie mij me jou hem haar ons hen hun zich mijn jouw zijn onze
    uw men iemand niemand iets niets wie wat welke welk er
    ben bent is was waren geweest heb hebt heeft hebben had hadden gehad word wordt worden werd
    werden geworden kan kunt kunnen kon konden moet moeten moest zal zult zullen zou zouden mag
    mogen
    wil willen doet doen laat laten gaat gaan
    aan achter bij binnen boven buiten door in langs met na naar naast om onder op over per sinds te
    tegen ten ter tijdens tot tussen uit van vanaf via volgens voor zonder
    en of maar want dus omdat doordat indien als dan terwijl hoewel zodat toen nadat voordat noch
    niet nog ook wel al alleen altijd nooit zeer erg heel hier daar nu toch weer zo zoals echter
    hoe waar wanneer waarom daarom hierbij waarbij waarmee daarmee hiermee eens even vaak soms reeds
    samen verder ja nee twee
    """.split()
)

STOP_LISTS = {
    "english": ENGLISH,
    "german": GERMAN,
    "french": FRENCH,
    "spanish": SPANISH,
    "italian": ITALIAN,
    "portuguese": PORTUGUESE,
    "dutch": DUTCH,
}
